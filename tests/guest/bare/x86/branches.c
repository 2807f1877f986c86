/*
 * Bare-metal test guest: random programs of branches
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "branches.h"

/* ---- Instructions --------------------------------------------------- */

/*
 * EBP is the fuel: a call or a jump backward uses up one unit, and is skipped
 * without fuel.  RCX is for LOOP and JRCXZ, RDX for indirect branches.
 */
enum op {
    NOP, SET_FUEL, USE_FUEL, TEST_FUEL, SET_RCX, LEA_RDX, PUSH_RDX, POP_RAX,
    JZ, JNZ, JS, JNS, JZ_SHORT, JNZ_SHORT, LOOP, JRCXZ,
    JMP, JMP_SHORT, JMP_RDX, CALL, CALL_RDX, CALL_NEXT, RET,
    INT_ON, INT_OFF, UD2,
};

/* Encodings: bytes, followed by a number of some size */
static const struct {
    uint8_t bytes[3], length, field;
    uint64_t kind;              /* of a branch: see struct passed */
} forms[] = {
    [NOP] = { { 0x90 }, 1, 0, 0 },
    [SET_FUEL] = { { 0xbd }, 1, 4, 0 },
    [USE_FUEL] = { { 0xff, 0xcd }, 2, 0, 0 },           /* dec %ebp */
    [TEST_FUEL] = { { 0xf7, 0xc5 }, 2, 4, 0 },
    [SET_RCX] = { { 0xb9 }, 1, 4, 0 },
    [LEA_RDX] = { { 0x48, 0x8d, 0x15 }, 3, 4, 0 },
    [PUSH_RDX] = { { 0x52 }, 1, 0, 0 },
    [POP_RAX] = { { 0x58 }, 1, 0, 0 },
    [JZ] = { { 0x0f, 0x84 }, 2, 4, NO_COND },
    [JNZ] = { { 0x0f, 0x85 }, 2, 4, NO_COND },
    [JS] = { { 0x0f, 0x88 }, 2, 4, NO_COND },
    [JNS] = { { 0x0f, 0x89 }, 2, 4, NO_COND },
    [JZ_SHORT] = { { 0x74 }, 1, 1, NO_COND },
    [JNZ_SHORT] = { { 0x75 }, 1, 1, NO_COND },
    [LOOP] = { { 0xe2 }, 1, 1, NO_COND },
    [JRCXZ] = { { 0xe3 }, 1, 1, NO_COND },
    [JMP] = { { 0xe9 }, 1, 4, NO_JUMP },
    [JMP_SHORT] = { { 0xeb }, 1, 1, NO_JUMP },
    [JMP_RDX] = { { 0xff, 0xe2 }, 2, 0, NO_IND_JUMP },
    [CALL] = { { 0xe8 }, 1, 4, NO_CALL },
    [CALL_RDX] = { { 0xff, 0xd2 }, 2, 0, NO_IND_CALL },
    [CALL_NEXT] = { { 0xe8 }, 1, 4, NO_CALL },
    [RET] = { { 0xc3 }, 1, 0, NO_RETURN },
    [INT_ON] = { { 0xcd, VEC_SYSCALL }, 2, 0, NO_FAR },
    [INT_OFF] = { { 0xcc }, 1, 0, NO_FAR },             /* int3 */
    [UD2] = { { 0x0f, 0x0b }, 2, 0, NO_FAR },
};

/* The kernel's handlers, which have their own branches */
CODE("branches_on:\n"
     "    mov lbr_switch(%rip), %ecx\n"
     "    mov lbr_on(%rip), %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "branches_on_end:\n"
     "    iretq\n"
     "branches_off:\n"
     "    mov lbr_switch(%rip), %ecx\n"
     "    xor %eax, %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "branches_off_end:\n"
     "    iretq\n"
     "branches_ud:\n"
     "    addq $2, (%rsp)\n"
     "branches_ud_call:\n"
     "    call branches_ud_leaf\n"
     "branches_ud_end:\n"
     "    iretq\n"
     "branches_ud_leaf:\n"
     "    ret\n");
LABEL(branches_on);
LABEL(branches_on_end);
LABEL(branches_off);
LABEL(branches_off_end);
LABEL(branches_ud);
LABEL(branches_ud_call);
LABEL(branches_ud_end);
LABEL(branches_ud_leaf);

#define AT(label) ((uint64_t)(label))

/* ---- Programs ------------------------------------------------------- */

#define FUNCTIONS       8
/* An item is a group of up to four instructions. */
#define MAX_ITEMS       8
#define MAX_INSNS       (FUNCTIONS * MAX_ITEMS * 4)
/* A forward branch, which can be a short one, skips so many items at most. */
#define MAX_SKIPPED     3
#define FUNCTION_SIZE   0x100

/* Each unit of fuel allows one more call or backward jump. */
#define MAX_FUEL        512
#define MAX_STEPS       ((MAX_FUEL + 1) * MAX_ITEMS * 4)

struct insn {
    enum op op;
    int32_t value;
    unsigned item;              /* its target; 0: none */
    uint64_t address;
    uint8_t *memory;            /* the address to write to */
};

static struct {
    struct insn insns[MAX_INSNS + 1];
    unsigned length;
    /* By item, the first instruction */
    unsigned items[FUNCTIONS * MAX_ITEMS];
    unsigned nr_items;
    /* By function, the first item */
    unsigned functions[FUNCTIONS + 1];
    /* In the function being written, the items allowed as targets */
    unsigned first, last;
    uint64_t address;
    uint8_t *memory;
    bool is_tame;
} program;

static void put_insn(enum op op, int32_t value, unsigned item)
{
    program.insns[program.length++] = (struct insn) {
        op, value, item, program.address, program.memory,
    };
    program.address += forms[op].length + forms[op].field;
    program.memory += forms[op].length + forms[op].field;
}

static void emit(enum op op)
{
    put_insn(op, 0, 0);
}

static void emit_value(enum op op, int32_t value)
{
    put_insn(op, value, 0);
}

static void emit_to(enum op op, unsigned item)
{
    put_insn(op, 0, item);
}

static void begin_item(void)
{
    program.items[program.nr_items++] = program.length;
}

/* This can be the next item: then the taken branch skips nothing. */
static unsigned item_ahead(void)
{
    unsigned item = program.nr_items + random() % (MAX_SKIPPED + 1);

    return item < program.last ? item : program.last;
}

static unsigned item_behind(void)
{
    return program.first + random() % (program.nr_items - program.first);
}

/* Choose any function but the first, which sets the fuel. */
static unsigned some_function(void)
{
    return program.functions[1 + random() % (FUNCTIONS - 1)];
}

static void emit_nops(void)
{
    for (unsigned n = 1 + random() % 3; n; n--) {
        emit(NOP);
    }
}

/* Each condition tests some bit of the fuel, so that the result varies. */
static void emit_condition(void)
{
    static const enum op ops[] = { JZ, JNZ, JZ_SHORT, JNZ_SHORT };

    emit_value(TEST_FUEL, 1 << random() % 4);
    emit_to(ops[random() % ARRAY_SIZE(ops)], item_ahead());
}

static void emit_of_rcx(void)
{
    emit_value(SET_RCX, random() % 3);
    emit_to(random() % 2 ? LOOP : JRCXZ, item_ahead());
}

static void emit_jump(void)
{
    emit_to(random() % 2 ? JMP : JMP_SHORT, item_ahead());
}

static void emit_indirect_jump(void)
{
    emit_to(LEA_RDX, item_ahead());
    emit(JMP_RDX);
}

/* Without fuel, skip the rest of the item. */
static void emit_use_of_fuel(void)
{
    emit(USE_FUEL);
    emit_to(JS, program.nr_items);
}

static void emit_call(void)
{
    emit_use_of_fuel();
    emit_to(CALL, some_function());
}

static void emit_indirect_call(void)
{
    emit_to(LEA_RDX, some_function());
    emit_use_of_fuel();
    emit(CALL_RDX);
}

/* The loop ends when that bit of the fuel is clear. */
static void emit_loop(void)
{
    emit_value(TEST_FUEL, 1 << random() % 3);
    emit_to(JZ, program.nr_items);
    emit(USE_FUEL);
    emit_to(JNS, item_behind());
}

static void emit_call_next(void)
{
    emit(CALL_NEXT);
    emit(POP_RAX);
}

/* A return without a matching call */
static void emit_return_ahead(void)
{
    emit_to(LEA_RDX, item_ahead());
    emit(PUSH_RDX);
    emit(RET);
}

static void emit_fault(void)
{
    emit(UD2);
}

static void emit_switch(void)
{
    emit(random() % 2 ? INT_ON : INT_OFF);
}

/* Without fuel, end the recording; this is usually deep inside calls. */
static void emit_end(void)
{
    emit_value(TEST_FUEL, INT32_MIN);
    emit_to(JZ, program.nr_items);
    emit(INT_OFF);
}

/*
 * Many programs lack the last three kinds: the first keeps the stack of calls
 * short, and the other two end a log of translated code.
 */
static void emit_item(void)
{
    static void (*const emitters[])(void) = {
        emit_nops, emit_condition, emit_of_rcx, emit_jump, emit_indirect_jump,
        emit_call, emit_call, emit_call,
        emit_indirect_call, emit_indirect_call, emit_indirect_call,
        emit_loop, emit_call_next, emit_end, emit_end,
        emit_return_ahead, emit_fault, emit_switch,
    };
    unsigned n = ARRAY_SIZE(emitters) - (program.is_tame ? 3 : 0);

    begin_item();
    emitters[random() % n]();
}

/* Every second function is too far away for the distance in a log. */
static void place_function(unsigned function)
{
    uint64_t offset = random() % (PAGE_SIZE - FUNCTION_SIZE);

    program.memory = &spare[function][offset];
    program.address = function % 2 ? AT(WINDOW(function)) + offset
                                   : AT(program.memory);
}

/* The first function switches the recording, and loops while there is fuel. */
static void generate_function(unsigned function)
{
    bool is_main = function == 0;

    place_function(function);
    program.first = program.nr_items + is_main;
    program.last = program.functions[function + 1] - 1;
    if (is_main) {
        begin_item();
        emit_value(SET_FUEL, 1 + random() % (MAX_FUEL >> random() % 8));
        emit(INT_ON);
        begin_item();
        emit_call();
    }
    while (program.nr_items < program.last) {
        emit_item();
    }
    begin_item();
    if (is_main) {
        emit(USE_FUEL);
        emit_to(JNS, program.first);
        emit(INT_OFF);
    }
    emit(RET);
}

static void write_insn(const struct insn *insn)
{
    unsigned length = forms[insn->op].length, field = forms[insn->op].field;
    int32_t number = insn->value;

    if (insn->item) {
        number = program.insns[program.items[insn->item]].address
                 - (insn->address + length + field);
    }
    memcpy(insn->memory, forms[insn->op].bytes, length);
    memcpy(insn->memory + length, &number, field);
}

void branches_prepare(void)
{
    set_gate(VEC_SYSCALL, branches_on);
    set_gate(BP_VECTOR, branches_off);
    set_gate(UD_VECTOR, branches_ud);
    for (unsigned i = 1; i < FUNCTIONS; i += 2) {
        map(i, spare[i], PTE_RW);
    }
}

code_fn *branches_generate(void)
{
    program.length = 0;
    program.nr_items = 0;
    program.is_tame = random() % 2;
    /* Choose numbers of items first, as calls can go to any function. */
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        program.functions[i + 1] = program.functions[i] + 3
                                   + random() % (MAX_ITEMS - 2);
    }
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        generate_function(i);
    }
    for (unsigned i = 0; i < program.length; i++) {
        write_insn(&program.insns[i]);
    }
    return (code_fn *)program.insns[0].address;
}

/* ---- The walk ------------------------------------------------------- */

/*
 * A fault has the most: itself, two of the kernel's branches, and the return.
 */
#define MAX_PASSED (MAX_STEPS * 4)

static struct {
    bool kernel;
    unsigned at;                /* an instruction: program.length at its end */
    uint64_t insns;
    /* Registers; RDX and the stack also hold instructions */
    int32_t fuel, result;
    uint64_t rcx;
    unsigned rdx;
    unsigned stack[MAX_FUEL + 3], depth;
    /* The address after each step */
    uint64_t trace[MAX_TRACE], stepped_to;
    unsigned steps;
    struct passed passed[MAX_PASSED];
    unsigned nr_passed;
} walk;

static uint64_t address_of(unsigned insn)
{
    return program.insns[insn].address;
}

static void pass(uint64_t kind, uint64_t from, uint64_t to, bool kernel)
{
    walk.passed[walk.nr_passed++] = (struct passed) {
        from, to, kind, walk.insns, kernel,
    };
}

static void enter_kernel(const void *gate)
{
    pass(NO_FAR, address_of(walk.at), AT(gate), true);
    walk.at++;
}

/* Leave by an IRETQ. */
static void leave_kernel(const void *from)
{
    walk.insns++;
    pass(NO_FAR, AT(from), address_of(walk.at), walk.kernel);
}

/* An instruction that faults does not count. */
static void fault(void)
{
    walk.insns--;
    enter_kernel(branches_ud);
    walk.insns += 2;
    pass(NO_CALL, AT(branches_ud_call), AT(branches_ud_leaf), true);
    walk.insns++;
    pass(NO_RETURN, AT(branches_ud_leaf), AT(branches_ud_end), true);
    leave_kernel(branches_ud_end);
}

static void interrupt(enum op op)
{
    if (op == UD2) {
        fault();
        return;
    }
    enter_kernel(op == INT_ON ? branches_on : branches_off);
    walk.insns += 4;
    pass(op == INT_ON ? SWITCHED_ON : SWITCHED_OFF, 0, 0, true);
    leave_kernel(op == INT_ON ? branches_on_end : branches_off_end);
}

static void compute(const struct insn *insn)
{
    switch (insn->op) {
    case SET_FUEL:
        walk.fuel = insn->value;
        break;
    case USE_FUEL:
        walk.result = --walk.fuel;
        break;
    case TEST_FUEL:
        walk.result = walk.fuel & insn->value;
        break;
    case SET_RCX:
        walk.rcx = insn->value;
        break;
    case LEA_RDX:
        walk.rdx = program.items[insn->item];
        break;
    case PUSH_RDX:
        walk.stack[walk.depth++] = walk.rdx;
        break;
    case POP_RAX:
        walk.depth--;
        break;
    default:
        break;
    }
    walk.at++;
}

static bool is_taken(enum op op)
{
    switch (op) {
    case JZ:
    case JZ_SHORT:
        return walk.result == 0;
    case JNZ:
    case JNZ_SHORT:
        return walk.result != 0;
    case JS:
        return walk.result < 0;
    case JNS:
        return walk.result >= 0;
    case LOOP:
        return --walk.rcx != 0;
    case JRCXZ:
        return walk.rcx == 0;
    default:
        return true;
    }
}

/* Returns: a branch's target; updates the stack */
static unsigned target_of(const struct insn *insn)
{
    switch (insn->op) {
    case CALL:
    case CALL_RDX:
    case CALL_NEXT:
        walk.stack[walk.depth++] = walk.at + 1;
        break;
    case RET:
        return walk.stack[--walk.depth];
    default:
        break;
    }
    return insn->item ? program.items[insn->item]
           : insn->op == CALL_NEXT ? walk.at + 1 : walk.rdx;
}

static void branch(const struct insn *insn)
{
    unsigned target = walk.at + 1;

    if (is_taken(insn->op)) {
        target = target_of(insn);
        pass(forms[insn->op].kind, insn->address, address_of(target),
             walk.kernel);
    }
    walk.at = target;
}

/* count_steps() ignores a step that ends at the same address as the last. */
static void note_step(void)
{
    uint64_t to = address_of(walk.at);

    if (to == walk.stepped_to) {
        return;
    }
    walk.stepped_to = to;
    if (walk.steps < MAX_TRACE) {
        walk.trace[walk.steps] = to;
    }
    walk.steps++;
}

static void walk_step(void)
{
    const struct insn *insn = &program.insns[walk.at];
    uint64_t kind = forms[insn->op].kind;

    walk.insns++;
    if (kind == NO_FAR) {
        /* Neither this nor the kernel's handler ends a single step. */
        interrupt(insn->op);
        return;
    }
    if (kind) {
        branch(insn);
    } else {
        compute(insn);
    }
    note_step();
}

const struct passed *branches_walk(bool kernel, unsigned *count)
{
    walk.kernel = kernel;
    walk.at = 0;
    walk.insns = 0;
    walk.steps = 0;
    walk.stepped_to = address_of(0);
    walk.nr_passed = 0;
    walk.depth = 0;
    /* The program's last return ends the walk. */
    walk.stack[walk.depth++] = program.length;
    program.insns[program.length].address = 0;
    while (walk.at != program.length) {
        walk_step();
    }
    *count = walk.nr_passed;
    return walk.passed;
}

void branches_expect_steps(bool kernel)
{
    code_fn *fn = (code_fn *)program.insns[0].address;
    uint64_t steps = kernel ? count_kernel_steps(fn, 0) : count_steps(fn, 0);

    expect(steps, walk.steps, "single steps");
    /* The address after the last step is not in the trace. */
    for (unsigned i = 0; i + 1 < steps && i < MAX_TRACE; i++) {
        expect(step_trace[i], walk.trace[i], "step %u", i);
    }
}
