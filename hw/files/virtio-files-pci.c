/*
 * virtio-files on PCI
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/virtio/virtio-pci.h"
#include "hw/pmu/compat.h"
#include "virtio-files.h"

#define TYPE_VIRTIO_FILES_PCI "virtio-files-pci-base"
OBJECT_DECLARE_SIMPLE_TYPE(VirtIOFilesPCI, VIRTIO_FILES_PCI)

struct VirtIOFilesPCI {
    VirtIOPCIProxy parent_obj;
    VirtIOFiles vdev;
};

/* One for each queue, and one for changes of the configuration */
#define VECTORS 3

static const Property properties[] = {
    DEFINE_PROP_BIT("ioeventfd", VirtIOPCIProxy, flags,
                    VIRTIO_PCI_FLAG_USE_IOEVENTFD_BIT, true),
    DEFINE_PROP_UINT32("vectors", VirtIOPCIProxy, nvectors, VECTORS),
};

static void realize(VirtIOPCIProxy *proxy, Error **errp)
{
    VirtIOFilesPCI *dev = VIRTIO_FILES_PCI(proxy);

    qdev_realize(DEVICE(&dev->vdev), BUS(&proxy->bus), errp);
}

static void class_init(ObjectClass *klass, ClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    VIRTIO_PCI_CLASS(klass)->realize = realize;
    device_class_set_props(dc, properties);
    set_bit(DEVICE_CATEGORY_STORAGE, dc->categories);
    PCI_DEVICE_CLASS(klass)->class_id = PCI_CLASS_STORAGE_OTHER;
}

static void instance_init(Object *obj)
{
    VirtIOFilesPCI *dev = VIRTIO_FILES_PCI(obj);

    virtio_instance_init_common(obj, &dev->vdev, sizeof(dev->vdev),
                                TYPE_VIRTIO_FILES);
}

static const VirtioPCIDeviceTypeInfo virtio_files_pci_info = {
    .base_name = TYPE_VIRTIO_FILES_PCI,
    .non_transitional_name = "virtio-files-pci",
    .instance_size = sizeof(VirtIOFilesPCI),
    .instance_init = instance_init,
    .class_init = class_init,
};

static void register_types(void)
{
    virtio_pci_types_register(&virtio_files_pci_info);
}

type_init(register_types)
