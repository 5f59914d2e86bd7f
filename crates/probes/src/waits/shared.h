/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What both halves of the waits probe see beside what the carrier has. */
#ifndef WAGGLE_WAITS_SHARED_H
#define WAGGLE_WAITS_SHARED_H

/* A function of the server that says what its callers wait for. Addresses as the file has them. */
struct function {
	u32 begin;
	u32 end;
	u32 part;
	u32 unused;
};

/*
 * From this place of the C library up to the next row. The stack pointer of the caller is a register
 * plus an offset; its return address stands right below.
 */
struct unwind_row {
	u32 begin;
	u32 rule; /* 0: not known */
};

#define RULE_OFFSET 0xffff /* to the stack pointer of the caller */
#define RULE_BP_SHIFT 16
#define RULE_BP_MASK 0xff /* words from there down to the saved frame pointer; 0: not touched */
#define RULE_FROM_BP (1 << 24) /* the offset counts from the frame pointer */
#define RULE_CONDITION (1 << 25) /* the function waits for a condition */
#define RULE_KNOWN (1 << 26)

/* On a processor. The kernel's half does not count that: it is what the parts leave. */
#define PART_CPU 0

/* What a thread that serves a session does at a look. */
struct look_row {
	u64 thd;
	u64 start; /* of the statement, as the server notes it, when the thread last left the processor */
	u64 ns; /* for how long */
	u64 part; /* why, as in `struct parts` */
};

/* What the stack says of a wait. */
struct stack_says {
	u32 part; /* 0: nothing */
	u32 condition; /* not 0: no mutex and no read-write lock */
	u32 left_library; /* not 0: all functions of the C library that it has are known */
	u32 unused;
};

#define STATE_BYTES 32

/* What else must be read in the memory of a thread to know why it waits. */
#define WANTS_POLLED 1 /* what it polls */
#define WANTS_STACK 2 /* its stack, and the state of its session */

/* A thread that nobody has noted yet, as the kernel sees it: what is known without its memory. */
struct thread_row {
	u64 pointer; /* from which thread-local storage counts */
	u64 switches; /* how often it has left a processor */
	u64 ip;
	u64 sp;
	u64 bp;
	u64 first; /* the first argument of its system call */
	u32 tid;
	u32 tgid;
	u32 is_off; /* off the processor: all this holds until it is back */
	u32 wants;
};

/* What was read in the memory of a thread. It holds if the thread has not left a processor since. */
struct note {
	u64 switches;
	u64 thd;
	u64 start; /* of the statement, as the server notes it */
	u64 polled;
	u64 state[STATE_BYTES / 8]; /* text of the session's state */
	struct stack_says says;
	u32 command;
	u32 is_off; /* as in the row; 0: only `thd` was read */
};

#define NOTES_MAX 4096

/* How long the tables are, and what is told beside them. */
struct tables {
	u32 functions;
	u32 unwind_rows;
	u32 tells_stacks; /* not 0: a record whenever a thread leaves the processor in a statement */
};

#define WAIT_FRAMES 64
#define WAIT_KERNEL_FRAMES 24
#define WAIT_THREAD_NAME 16

/*
 * When a thread left the processor, and when it had come there. `switches` counts how often it has left, so
 * nobody takes two records for neighbours that are none. Times by the clock of the run queues.
 */
struct turn {
	u64 arrived;
	u64 left;
	u64 run_delay; /* in run queues in all */
	u64 switches;
	u32 tid;
	u32 unused;
};

/* RECORD_RESTS: a thread waits for its next request, so that its last wait is over. */
struct rests {
	struct head head;
	struct turn turn;
};

/* RECORD_LEFT: a thread left the processor in a statement. */
struct wait_stack {
	struct head head;
	struct turn turn;
	u64 id;
	u64 start;
	u64 took_ns; /* to note all this */
	u32 command;
	u32 part; /* why it left */
	u32 user_frames; /* more than WAIT_FRAMES: there are others behind them */
	s32 kernel_bytes;
	u8 thread_name[WAIT_THREAD_NAME];
	u64 user[WAIT_FRAMES]; /* the innermost first */
	u64 kernel[WAIT_KERNEL_FRAMES];
};

#endif
