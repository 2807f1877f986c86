/*
 * Suite fault: instructions that fault do not retire
 *
 * Faults are in the middle of a block, in the kernel and in user mode.
 * Handlers of known length repair the cause and retry, or skip the instruction.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/*
 * The handlers. fault_map stores a page table entry (fault_entry at fault_slot)
 * and retries, fault_skip skips fault_length bytes.  Handlers for vectors with
 * an error code end in _error.
 */
#define MAP_COUNT           10
#define SKIP_COUNT          6
#define SKIP_ERROR_COUNT    7

uint64_t fault_hits, fault_entry, fault_length;
uint64_t *fault_slot;

CODE("fault_map:\n"
     "    push %rax\n"
     "    push %rdx\n"
     "    mov fault_slot, %rdx\n"
     "    mov fault_entry, %rax\n"
     "    mov %rax, (%rdx)\n"
     "    incq fault_hits\n"
     "    pop %rdx\n"
     "    pop %rax\n"
     "    add $8, %rsp\n"
     "    iretq\n"
     "fault_skip_error:\n"
     "    add $8, %rsp\n"
     "fault_skip:\n"
     "    push %rax\n"
     "    mov fault_length, %rax\n"
     "    add %rax, 8(%rsp)\n"
     "    pop %rax\n"
     "    incq fault_hits\n"
     "    iretq\n");
LABEL(fault_map);
LABEL(fault_skip);
LABEL(fault_skip_error);

/*
 * Count @fn, which has @count instructions and @faults faults, with a handler
 * of @handler instructions, in user mode and, unless @user_only, in the kernel.
 * @prepare creates the cause of the fault.
 */
static void expect_faults(const char *what, code_fn *fn, uint64_t arg,
                          unsigned count, unsigned faults, unsigned handler,
                          void (*prepare)(void), bool user_only)
{
    struct counts c;

    if (!user_only) {
        prepare();
        fault_hits = 0;
        c = measure_kernel(fn, arg);
        expect(fault_hits, faults, "%s: faults in the kernel", what);
        expect_counts(what, c, 0, count + faults * handler);
    }
    prepare();
    fault_hits = 0;
    c = measure_user(fn, arg);
    expect(fault_hits, faults, "%s: faults in user mode", what);
    expect_counts(what, c, count, faults * handler);
}

/* ---- Page faults ---------------------------------------------------- */

static void unmap_first(void)
{
    map(0, NULL, 0);
    fault_slot = &window[0];
    fault_entry = (uint64_t)spare[0] | PTE_RW;
    set_gate(PF_VECTOR, fault_map);
}

CODE("fault_third:\n"
     "    nop\n"
     "    nop\n"
     "    mov (%rdi), %rax\n"
     "    nop\n"
     "    nop\n"
     "    ret\n"
     "fault_store:\n"
     "    nop\n"
     "    mov %rax, 8(%rdi)\n"
     "    nop\n"
     "    ret\n"
     "fault_first:\n"
     "    addl $1, (%rdi)\n"
     "    nop\n"
     "    ret\n"
     "fault_last:\n"
     "    lea 1f(%rip), %rax\n"
     "    mov %rax, spare\n"
     "    nop\n"
     "    jmp *(%rdi)\n"
     "1:  nop\n"
     "    ret\n");
code_fn fault_third, fault_store, fault_first, fault_last;

TEST(fault, page_fault)
{
    uint64_t page = (uint64_t)WINDOW(0);

    expect_faults("load", fault_third, page, 6, 1, MAP_COUNT, unmap_first,
                  false);
    expect_faults("store", fault_store, page, 4, 1, MAP_COUNT, unmap_first,
                  false);
    expect_faults("read-modify-write", fault_first, page, 3, 1, MAP_COUNT,
                  unmap_first, false);
    expect_faults("jump through memory", fault_last, page, 6, 1, MAP_COUNT,
                  unmap_first, false);
}

CODE("fault_many:\n"
     "    mov $100, %ecx\n"
     "1:  nop\n"
     "    mov (%rdi), %rax\n"
     "    add $4096, %rdi\n"
     "    dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn fault_many;

/* Each handler maps one page: fault_slot has to move on with it. */
CODE("fault_map_next:\n"
     "    push %rdx\n"
     "    mov fault_slot, %rdx\n"
     "    movq $spare + 7, (%rdx)\n"
     "    addq $8, fault_slot\n"
     "    incq fault_hits\n"
     "    pop %rdx\n"
     "    add $8, %rsp\n"
     "    iretq\n");
LABEL(fault_map_next);

static void unmap_many(void)
{
    for (unsigned i = 0; i < 100; i++) {
        map(i, NULL, 0);
    }
    fault_slot = window;
    set_gate(PF_VECTOR, fault_map_next);
}

TEST(fault, page_faults)
{
    expect_faults("100 faults", fault_many, (uint64_t)WINDOW(0), 502, 100, 8,
                  unmap_many, false);
}

/* A load that begins on a mapped page and ends on an unmapped one. */
static void unmap_second(void)
{
    map(0, spare[0], PTE_RW);
    map(1, NULL, 0);
    fault_slot = &window[1];
    fault_entry = (uint64_t)spare[1] | PTE_RW;
    set_gate(PF_VECTOR, fault_map);
}

TEST(fault, across_pages)
{
    uint64_t end = (uint64_t)WINDOW(1) - 4;

    expect_faults("load", fault_third, end, 6, 1, MAP_COUNT, unmap_second,
                  false);
    expect_faults("store", fault_store, end - 8, 4, 1, MAP_COUNT,
                  unmap_second, false);
}

static void write_protect_first(void)
{
    map(0, spare[0], PTE_P | PTE_U);
    fault_slot = &window[0];
    fault_entry = (uint64_t)spare[0] | PTE_RW;
    set_gate(PF_VECTOR, fault_map);
}

CODE("fault_lock:\n"
     "    nop\n"
     "    mov $1, %eax\n"
     "    lock xadd %rax, (%rdi)\n"
     "    nop\n"
     "    ret\n");
code_fn fault_lock;

TEST(fault, write_protection)
{
    expect_faults("ADD", fault_first, (uint64_t)WINDOW(0), 3, 1, MAP_COUNT,
                  write_protect_first, false);
    expect_faults("LOCK XADD", fault_lock, (uint64_t)WINDOW(0), 5, 1,
                  MAP_COUNT, write_protect_first, false);
}

/* Code on the two pages: NOPs to the end of the first, NOP and RET. */
static void code_on_pages(void)
{
    memset(spare[0], 0x90, PAGE_SIZE);
    memset(spare[1], 0x90, PAGE_SIZE);
    spare[1][1] = 0xc3;
    unmap_second();
}

/* 10 bytes of MOV, 4 of them on the second page; then RET. */
static void code_across_pages(void)
{
    static const uint8_t mov[] = {
        0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xc3,
    };

    memset(spare[0], 0x90, PAGE_SIZE);
    memcpy(&spare[0][PAGE_SIZE - 6], mov, 6);
    memcpy(spare[1], mov + 6, 5);
    unmap_second();
}

static void code_on_unmapped_page(void)
{
    memset(spare[0], 0x90, PAGE_SIZE);
    spare[0][7] = 0xc3;
    unmap_first();
}

CODE("fault_jump:\n"
     "    nop\n"
     "    jmp *%rdi\n");
code_fn fault_jump;

TEST(fault, fetch)
{
    code_fn *near_end = (code_fn *)(WINDOW(1) - 10);

    expect_faults("next page", near_end, 0, 12, 1, MAP_COUNT, code_on_pages,
                  false);
    expect_faults("second half", near_end, 0, 6, 1, MAP_COUNT,
                  code_across_pages, false);
    expect_faults("jump", fault_jump, (uint64_t)WINDOW(0), 2 + 8, 1,
                  MAP_COUNT, code_on_unmapped_page, false);
}

/* The stack lies on the unmapped page: for user mode only. */
CODE("fault_push:\n"
     "    mov %rsp, %rdx\n"
     "    lea 64(%rdi), %rsp\n"
     "    nop\n"
     "    push $5\n"
     "    pop %rax\n"
     "    mov %rdx, %rsp\n"
     "    ret\n"
     "fault_call:\n"
     "    mov %rsp, %rdx\n"
     "    lea 64(%rdi), %rsp\n"
     "    nop\n"
     "    call 1f\n"
     "    mov %rdx, %rsp\n"
     "    ret\n"
     "1:  nop\n"
     "    ret\n"
     "fault_ret:\n"
     "    mov %rsp, %rdx\n"
     "    lea 64(%rdi), %rsp\n"
     "    lea 1f(%rip), %rax\n"
     "    mov %rax, spare + 64\n"
     "    ret\n"
     "1:  mov %rdx, %rsp\n"
     "    ret\n");
code_fn fault_push, fault_call, fault_ret;

TEST(fault, stack)
{
    uint64_t page = (uint64_t)WINDOW(0);

    expect_faults("PUSH", fault_push, page, 7, 1, MAP_COUNT, unmap_first,
                  true);
    expect_faults("CALL", fault_call, page, 8, 1, MAP_COUNT, unmap_first,
                  true);
    expect_faults("RET", fault_ret, page, 7, 1, MAP_COUNT, unmap_first, true);
}

/* ---- Faults of other kinds ------------------------------------------ */

CODE("fault_ud:\n"
     "    nop\n"
     "    nop\n"
     "    ud2\n"
     "    nop\n"
     "    ret\n"
     "fault_de:\n"
     "    xor %ecx, %ecx\n"
     "    div %ecx\n"
     "    nop\n"
     "    ret\n"
     "fault_canonical:\n"
     "    movabs $0x8000000000000000, %rax\n"
     "    nop\n"
     "    mov (%rax), %ecx\n"
     "    nop\n"
     "    ret\n"
     "fault_segment:\n"
     "    nop\n"
     "    mov $0x7f8, %eax\n"
     "    mov %eax, %fs\n"
     "    ret\n"
     "fault_privileged:\n"
     "    nop\n"
     "    hlt\n"
     "    nop\n"
     "    ret\n"
     "fault_wrmsr:\n"
     "    mov $0x1b, %ecx\n"
     "    wrmsr\n"
     "    ret\n"
     "fault_wbinvd:\n"
     "    nop\n"
     "    wbinvd\n"
     "    ret\n"
     "fault_invd:\n"
     "    nop\n"
     "    invd\n"
     "    ret\n"
     "fault_in:\n"
     "    nop\n"
     "    in $0x71, %al\n"
     "    ret\n"
     "fault_int:\n"
     "    nop\n"
     "    int $0x40\n"
     "    ret\n");
code_fn fault_ud, fault_de, fault_canonical, fault_segment, fault_privileged,
        fault_wrmsr, fault_wbinvd, fault_invd, fault_in, fault_int;

static void no_cause(void)
{
}

TEST(fault, undefined_opcode)
{
    set_gate(UD_VECTOR, fault_skip);
    fault_length = 2;
    expect_faults("UD2", fault_ud, 0, 4, 1, SKIP_COUNT, no_cause, false);
}

TEST(fault, divide_error)
{
    set_gate(DE_VECTOR, fault_skip);
    fault_length = 2;
    expect_faults("DIV", fault_de, 0, 3, 1, SKIP_COUNT, no_cause, false);
}

TEST(fault, not_canonical)
{
    set_gate(GP_VECTOR, fault_skip_error);
    fault_length = 2;
    expect_faults("load", fault_canonical, 0, 4, 1, SKIP_ERROR_COUNT,
                  no_cause, false);
}

TEST(fault, segment_load)
{
    set_gate(GP_VECTOR, fault_skip_error);
    fault_length = 2;
    expect_faults("MOV to FS", fault_segment, 0, 3, 1, SKIP_ERROR_COUNT,
                  no_cause, false);
}

TEST(fault, privileged)
{
    set_gate(GP_VECTOR, fault_skip_error);
    fault_length = 1;
    expect_faults("HLT", fault_privileged, 0, 3, 1, SKIP_ERROR_COUNT,
                  no_cause, true);
    fault_length = 2;
    expect_faults("WRMSR", fault_wrmsr, 0, 2, 1, SKIP_ERROR_COUNT, no_cause,
                  true);
    expect_faults("WBINVD", fault_wbinvd, 0, 2, 1, SKIP_ERROR_COUNT, no_cause,
                  true);
    expect_faults("INVD", fault_invd, 0, 2, 1, SKIP_ERROR_COUNT, no_cause,
                  true);
    expect_faults("IN", fault_in, 0, 2, 1, SKIP_ERROR_COUNT, no_cause, true);
    expect_faults("INT without a gate", fault_int, 0, 2, 1, SKIP_ERROR_COUNT,
                  no_cause, true);
}

/* A gate that is not present, in the kernel too: the INT does not retire. */
CODE("fault_no_gate:\n"
     "    nop\n"
     "    int $0x50\n"
     "    nop\n"
     "    ret\n");
code_fn fault_no_gate;

TEST(fault, no_gate)
{
    set_gate(0x50, NULL);
    set_gate(NP_VECTOR, fault_skip_error);
    fault_length = 2;
    expect_faults("INT", fault_no_gate, 0, 3, 1, SKIP_ERROR_COUNT, no_cause,
                  false);
}

/* #NM: the handler clears CR0.TS, the instruction is repeated. */
CODE("fault_clear_ts:\n"
     "    incq fault_hits\n"
     "    clts\n"
     "    iretq\n"
     "fault_sse:\n"
     "    nop\n"
     "    xorps %xmm0, %xmm0\n"
     "    addps %xmm0, %xmm0\n"
     "    ret\n");
LABEL(fault_clear_ts);
code_fn fault_sse;

static void set_ts(void)
{
    write_cr0(read_cr0() | CR0_TS);
}

TEST(fault, device_not_available)
{
    set_gate(NM_VECTOR, fault_clear_ts);
    expect_faults("SSE", fault_sse, 0, 4, 1, 3, set_ts, false);
}

/* IRET to a code segment that does not exist, in the kernel */
CODE("fault_iret:\n"
     "    mov %rsp, %rdx\n"
     "    push $0\n"
     "    push %rdx\n"
     "    push $2\n"
     "    push $0x7f8\n"
     "    push $0\n"
     "    iretq\n"
     "    mov %rdx, %rsp\n"
     "    ret\n");
code_fn fault_iret;

TEST(fault, iret)
{
    set_gate(GP_VECTOR, fault_skip_error);
    fault_length = 2;
    expect_counts("IRET", measure_kernel(fault_iret, 0), 0,
                  8 + SKIP_ERROR_COUNT);
}

/* 16 bytes are more than an instruction may have. */
CODE("fault_too_long:\n"
     "    nop\n"
     "    .fill 15, 1, 0x66\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn fault_too_long;

TEST(fault, too_long)
{
    set_gate(GP_VECTOR, fault_skip_error);
    fault_length = 16;
    expect_faults("16 bytes", fault_too_long, 0, 3, 1, SKIP_ERROR_COUNT,
                  no_cause, false);
}

/* #MF: a division by zero shows at the next waiting instruction. */
CODE("fault_clear_fpu:\n"
     "    incq fault_hits\n"
     "    fnclex\n"
     "    iretq\n"
     "fault_x87:\n"
     "    fninit\n"
     "    push $0x37b\n"
     "    fldcw (%rsp)\n"
     "    fld1\n"
     "    fldz\n"
     "    fdivrp\n"
     "    nop\n"
     "    fwait\n"
     "    nop\n"
     "    fninit\n"
     "    pop %rax\n"
     "    ret\n");
LABEL(fault_clear_fpu);
code_fn fault_x87;

TEST(fault, x87)
{
    set_gate(MF_VECTOR, fault_clear_fpu);
    expect_faults("x87", fault_x87, 0, 12, 1, 3, no_cause, false);
}

/* ---- Debug exceptions ----------------------------------------------- */

#define DR7_EXECUTE0    0x00000402
#define DR7_WRITE0      0x000d0402
#define DR7_PORT0       0x00020402
#define DB_COUNT        3

static void set_breakpoint(uint64_t address, uint64_t dr7)
{
    asm volatile("mov %0, %%dr0" : : "r"(address));
    asm volatile("mov %0, %%dr7" : : "r"(dr7));
}

/* The handler lets a breakpoint's instruction pass by RFLAGS.RF. */
CODE("fault_on_db:\n"
     "    incq fault_hits\n"
     "    orl $0x10000, 16(%rsp)\n"
     "    iretq\n"
     "fault_watched:\n"
     "    nop\n"
     "    mov %rax, spare\n"
     "    nop\n"
     "    nop\n"
     "fault_break_here:\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
LABEL(fault_on_db);
LABEL(fault_break_here);
code_fn fault_watched;

TEST(fault, watchpoint)
{
    set_gate(DB_VECTOR, fault_on_db);
    set_breakpoint((uint64_t)spare, DR7_WRITE0);
    expect_faults("write", fault_watched, 0, 7, 1, DB_COUNT, no_cause, false);
}

/* Breakpoints on ports: OUT has retired when its trap comes. */
CODE("fault_port:\n"
     "    nop\n"
     "    out %al, $0x80\n"
     "    nop\n"
     "    nop\n"
     "    in $0x71, %al\n"
     "    nop\n"
     "    ret\n");
code_fn fault_port;

TEST(fault, port_breakpoint)
{
    set_gate(DB_VECTOR, fault_on_db);
    write_cr4(read_cr4() | CR4_DE);
    fault_hits = 0;
    set_breakpoint(0x80, DR7_PORT0);
    expect_counts("OUT", measure_kernel(fault_port, 0), 0, 7 + DB_COUNT);
    expect(fault_hits, 1, "traps at OUT");
    set_breakpoint(0x71, DR7_PORT0);
    expect_counts("IN", measure_kernel(fault_port, 0), 0, 7 + DB_COUNT);
    expect(fault_hits, 2, "traps at IN");
}

TEST(fault, breakpoint)
{
    if (option("debugger", 0)) {
        /*
         * QEMU does not support a debugger together with the guest's
         * breakpoints.
         */
        skip();
    }
    set_gate(DB_VECTOR, fault_on_db);
    set_breakpoint((uint64_t)fault_break_here, DR7_EXECUTE0);
    expect_faults("execute", fault_watched, 0, 7, 1, DB_COUNT, no_cause,
                  false);
}
