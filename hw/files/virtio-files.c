/*
 * virtio-files: a directory of the host's, which a guest may read
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-builtin-visit.h"
#include "qemu/module.h"
#include "migration/vmstate.h"
#include "standard-headers/linux/virtio_fs.h"
#include "standard-headers/linux/virtio_ids.h"
#include "hw/pmu/compat.h"
#include "virtio-files.h"

#define QUEUE_SIZE 128

/* Both queues: the first is for urgent requests. */
static void serve(VirtIODevice *vdev, VirtQueue *vq)
{
    VirtIOFiles *f = VIRTIO_FILES(vdev);
    VirtQueueElement *elem;
    ssize_t size;

    while ((elem = virtqueue_pop(vq, sizeof(*elem)))) {
        size = fuse_server_answer(&f->server, elem->out_sg, elem->out_num,
                                  elem->in_sg, elem->in_num);
        if (size < 0) {
            virtio_error(vdev, "virtio-files: a request has no header");
            virtqueue_detach_element(vq, elem, 0);
            g_free(elem);
            return;
        }
        virtqueue_push(vq, elem, size);
        g_free(elem);
    }
    virtio_notify(vdev, vq);
}

static void get_config(VirtIODevice *vdev, uint8_t *data)
{
    VirtIOFiles *f = VIRTIO_FILES(vdev);
    struct virtio_fs_config config = { };

    memcpy(config.tag, f->tag, strlen(f->tag));
    config.num_request_queues = cpu_to_le32(1);
    memcpy(data, &config, sizeof(config));
}

static uint64_t get_features(VirtIODevice *vdev, uint64_t features,
                             Error **errp)
{
    return features;
}

static void reset(VirtIODevice *vdev)
{
    VirtIOFiles *f = VIRTIO_FILES(vdev);

    g_clear_pointer(&f->changes, g_ptr_array_unref);
    fuse_server_reset(&f->server);
}

static void realize(DeviceState *dev, Error **errp)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);
    VirtIOFiles *f = VIRTIO_FILES(dev);
    struct virtio_fs_config config;

    if (HOST_BIG_ENDIAN) {
        error_setg(errp, "virtio-files needs a little-endian host");
        return;
    }
    if (!f->tag || !*f->tag || strlen(f->tag) > sizeof(config.tag)) {
        error_setg(errp, "virtio-files needs a tag of 1 to %zu bytes",
                   sizeof(config.tag));
        return;
    }
    if (!f->path) {
        error_setg(errp, "virtio-files needs the path of a directory");
        return;
    }
    f->server.names.cache = f->cache;
    f->server.keeps = f->keeps;
    if (!fuse_server_open(&f->server, f->path, errp)) {
        return;
    }
    virtio_init(vdev, VIRTIO_ID_FS, sizeof(config));
    virtio_add_queue(vdev, QUEUE_SIZE, serve);
    virtio_add_queue(vdev, QUEUE_SIZE, serve);
}

static void unrealize(DeviceState *dev)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(dev);

    virtio_del_queue(vdev, 0);
    virtio_del_queue(vdev, 1);
    virtio_cleanup(vdev);
    g_clear_pointer(&VIRTIO_FILES(dev)->changes, g_ptr_array_unref);
    fuse_server_close(&VIRTIO_FILES(dev)->server);
}

static void visit_lines(Visitor *v, const char *name, const GPtrArray *lines,
                        Error **errp)
{
    strList *list = NULL, **tail = &list;
    size_t i;

    for (i = 0; lines && i < lines->len; i++) {
        QAPI_LIST_APPEND(tail, g_strdup(lines->pdata[i]));
    }
    visit_type_strList(v, name, &list, errp);
    qapi_free_strList(list);
}

static void get_asked(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    FuseServer *s = &VIRTIO_FILES(obj)->server;
    g_autoptr(GPtrArray) lines = fuse_asked_describe(&s->asked, &s->names);

    visit_lines(v, name, lines, errp);
}

static void get_changes(Object *obj, Visitor *v, const char *name,
                        void *opaque, Error **errp)
{
    visit_lines(v, name, VIRTIO_FILES(obj)->changes, errp);
}

static int begin_load(void *opaque)
{
    VirtIOFiles *f = opaque;

    fuse_server_reset(&f->server);
    return 0;
}

static int end_load(void *opaque, int version)
{
    VirtIOFiles *f = opaque;

    g_clear_pointer(&f->changes, g_ptr_array_unref);
    f->changes = fuse_kept_check(&f->server.names, f->server.root);
    return 0;
}

static const VMStateDescription vmstate_files = {
    .name = "virtio-files-device",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = begin_load,
    .post_load = end_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(server.names, VirtIOFiles, 1, vmstate_fuse_names,
                       FuseNames),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_virtio_files = {
    .name = "virtio-files",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_VIRTIO_DEVICE,
        VMSTATE_END_OF_LIST()
    },
};

static const Property properties[] = {
    DEFINE_PROP_STRING("path", VirtIOFiles, path),
    DEFINE_PROP_STRING("tag", VirtIOFiles, tag),
    DEFINE_PROP_BOOL("cache", VirtIOFiles, cache, true),
    DEFINE_PROP_BOOL("keeps", VirtIOFiles, keeps, false),
};

static void class_init(ObjectClass *klass, ClassData *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);

    device_class_set_props(dc, properties);
    dc->vmsd = &vmstate_virtio_files;
    set_bit(DEVICE_CATEGORY_STORAGE, dc->categories);
    vdc->realize = realize;
    vdc->unrealize = unrealize;
    vdc->get_config = get_config;
    vdc->get_features = get_features;
    vdc->reset = reset;
    vdc->vmsd = &vmstate_files;
    object_class_property_add(klass, "asked", "[str]", get_asked, NULL, NULL,
                              NULL);
    object_class_property_set_description(klass, "asked",
        "What the guest has asked for: \"look\", \"link\" or \"read\", "
        "offset, size, the time of the file's last change, and path");
    object_class_property_add(klass, "changes", "[str]", get_changes, NULL,
                              NULL, NULL);
    object_class_property_set_description(klass, "changes",
        "What the host has changed since the guest was saved: \"replaced\" or "
        "\"changed\", and a path");
}

static const TypeInfo virtio_files_info = {
    .name = TYPE_VIRTIO_FILES,
    .parent = TYPE_VIRTIO_DEVICE,
    .instance_size = sizeof(VirtIOFiles),
    .class_init = class_init,
};

static void register_types(void)
{
    type_register_static(&virtio_files_info);
}

type_init(register_types)
