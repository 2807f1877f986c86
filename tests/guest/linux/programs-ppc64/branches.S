/*
 * Branches of all kinds
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 30000
f:      blr
g:      bdzlr           # conditional
        blr
_start: lis 12,f@ha
        addi 12,12,f@l
        lis 14,N>>16
        ori 14,14,N&0xffff
1:      bl f            # call, + blr: return
        mtctr 12
        bctrl           # + blr
        bcl 20,31,.+4   # call
        mflr 3
        addi 3,3,20     # behind the nop
        mtlr 3
        blr             # return
        nop             # not executed: mflr+16 is the insn after this
        li 5,2
        mtctr 5
        bl g            # ctr 2 -> 1: not taken, then blr
        bl g            # ctr 1 -> 0: taken
        b 2f
2:      cmpdi 14,1
        beq 3f          # taken once
        addi 14,14,-1
        b 1b
3:      quit
        # per round: bl f,blr, bctrl,blr, bcl, blr, bl g,bdzlr,blr, bl g,bdzlr, b, beq
        # insns: bl,blr,mtctr,bctrl,blr,bcl,mflr,addi,mtlr,blr,li,mtctr,bl,bdzlr,blr,bl,bdzlr,b,cmpdi,beq = 20
        expect instructions, 4+N*20+(N-1)*2+QUIT
        expect branches, N*13+N-1
        expect taken, N*11+1+N-1
