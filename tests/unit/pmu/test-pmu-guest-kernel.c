/*
 * Performance monitoring unit: a guest's kernel
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/guest-kernel.h"

#define ID "00112233445566778899aabbccddeeff01020304"

/* As in Linux 6.1, without lines that are not used here */
#define TEXT \
    "OSRELEASE=6.1.0-37-amd64\n" \
    "BUILD-ID=" ID "\n" \
    "PAGESIZE=4096\n" \
    "SYMBOL(init_uts_ns)=ffffffff9b61b6c0\n" \
    "SYMBOL(_stext)=ffffffff9a000000\n" \
    "KERNELOFFSET=19000000\n"

static const uint8_t id[20] = {
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
    0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 1, 2, 3, 4,
};

/*
 * Returns: a note that ends where its memory does, so that a sanitizer detects
 * any read past it.
 */
static char *make_note(const char *name, const char *text, size_t *size)
{
    uint32_t header[] = { strlen(name) + 1, strlen(text), 0 };
    char *note;

    *size = 24 + strlen(text);
    note = g_malloc0(*size);
    memcpy(note, header, sizeof(header));
    memcpy(note + 12, name, strlen(name));
    memcpy(note + 24, text, strlen(text));
    return note;
}

static bool parse(PmuGuestKernel *kernel, const char *text)
{
    size_t size;
    g_autofree char *note = make_note("VMCOREINFO", text, &size);

    return pmu_guest_kernel_parse(kernel, note, size);
}

static void test_linux(void)
{
    PmuGuestKernel kernel;

    g_assert_true(parse(&kernel, TEXT));
    g_assert_cmpstr(kernel.release, ==, "6.1.0-37-amd64");
    g_assert_cmphex(kernel.text, ==, 0xffffffff9a000000);
    g_assert_cmpmem(kernel.build_id, kernel.build_id_size, id, sizeof(id));
}

/* Linux offers a page, which is 0 after the note. */
static void test_page(void)
{
    PmuGuestKernel kernel;
    size_t size;
    g_autofree char *note = make_note("VMCOREINFO", TEXT, &size);
    g_autofree char *page = g_malloc0(4096);

    memcpy(page, note, size);
    g_assert_true(pmu_guest_kernel_parse(&kernel, page, 4096));
    g_assert_cmphex(kernel.text, ==, 0xffffffff9a000000);
}

/* Before 5.9 there was no build id. */
static void test_no_build_id(void)
{
    PmuGuestKernel kernel;

    g_assert_true(parse(&kernel, "SYMBOL(_stext)=c000000000000000\n"));
    g_assert_cmphex(kernel.text, ==, 0xc000000000000000);
    g_assert_cmpuint(kernel.build_id_size, ==, 0);
    g_assert_cmpstr(kernel.release, ==, "");
}

/* A note can be cut anywhere; its last line is then shorter. */
static void test_cut(void)
{
    PmuGuestKernel kernel;
    size_t size, i;
    g_autofree char *note = make_note("VMCOREINFO", TEXT, &size);

    for (i = 0; i < size; i++) {
        g_autofree char *cut = g_memdup2(note, i);
        size_t text = strstr(TEXT, "SYMBOL(_stext)=") - TEXT + 24 + 15;

        g_assert_cmpint(pmu_guest_kernel_parse(&kernel, cut, i), ==, i > text);
    }
}

static void test_no_kernel(void)
{
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "OSRELEASE=6.1.0\n",
        "xSYMBOL(_stext)=1000\n",
        "SYMBOL(_stext)=\n",
        "SYMBOL(_stext)=0\n",
        "SYMBOL(_stext)=0x1000\n",
        "SYMBOL(_stext)=-1\n",
        "SYMBOL(_stext)=10000000000000000\n",
    };
    PmuGuestKernel kernel;
    size_t size, i;
    g_autofree char *other = make_note("VMCOREINFX", TEXT, &size);

    g_assert_false(pmu_guest_kernel_parse(&kernel, other, size));
    for (i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_assert_false(parse(&kernel, texts[i]));
    }
}

static void test_release_is_bounded(void)
{
    g_autofree char *release = g_strnfill(1000, 'r');
    g_autofree char *text = g_strdup_printf(
        "SYMBOL(_stext)=1000\nOSRELEASE=%s", release);
    PmuGuestKernel kernel;

    g_assert_true(parse(&kernel, text));
    g_assert_cmpuint(strlen(kernel.release), ==, PMU_KERNEL_MAX_RELEASE);
}

static void test_build_id(void)
{
    PmuGuestKernel kernel = {};

    g_assert_true(pmu_guest_kernel_set_build_id(&kernel, ID, 40));
    g_assert_cmpmem(kernel.build_id, kernel.build_id_size, id, 20);
    g_assert_true(pmu_guest_kernel_set_build_id(&kernel, "FEx", 2));
    g_assert_cmpuint(kernel.build_id_size, ==, 1);
    g_assert_cmphex(kernel.build_id[0], ==, 0xfe);
    g_assert_cmphex(kernel.build_id[1], ==, 0);
}

static void test_no_such_build_id(void)
{
    static const char *const texts[] = {
        "", "0", "123", "0000", "12 4", "0x12", ID "05",
    };
    PmuGuestKernel kernel = { .build_id = { 7 }, .build_id_size = 1 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_assert_false(pmu_guest_kernel_set_build_id(&kernel, texts[i],
                                                     strlen(texts[i])));
        g_assert_cmpuint(kernel.build_id[0], ==, 7);
        g_assert_cmpuint(kernel.build_id_size, ==, 1);
    }
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pmu/guest-kernel/linux", test_linux);
    g_test_add_func("/pmu/guest-kernel/page", test_page);
    g_test_add_func("/pmu/guest-kernel/no-build-id", test_no_build_id);
    g_test_add_func("/pmu/guest-kernel/cut", test_cut);
    g_test_add_func("/pmu/guest-kernel/no-kernel", test_no_kernel);
    g_test_add_func("/pmu/guest-kernel/release-is-bounded",
                    test_release_is_bounded);
    g_test_add_func("/pmu/guest-kernel/build-id", test_build_id);
    g_test_add_func("/pmu/guest-kernel/no-such-build-id",
                    test_no_such_build_id);
    return g_test_run();
}
