/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * For whom a thread waits in a futex or sleeps: the first function on its stack that says it. The C
 * library is left by its own unwind rows; the server keeps frame pointers.
 */
#ifndef WAGGLE_WAITS_FRAMES_BPF_H
#define WAGGLE_WAITS_FRAMES_BPF_H

#include "parts.bpf.h"
#include "../waits/shared.h"

/* Calls inside the C library, and functions of the server that are looked at. */
#define LIBRARY_FRAMES 6
#define SERVER_FRAMES 8
/* A table has fewer rows than two to the power of this. */
#define SEARCH_STEPS 16

/* Sorted by `begin`; user space sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct function);
} functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unwind_row);
} unwind_rows SEC(".maps");

/*
 * Where the last entry of a table stands that begins at or before `at`; the first where none does. There is no
 * branch on what is found, so the verifier follows one path.
 */
#define SEARCH(map, type, count, at)                                                               \
	({                                                                                         \
		u64 place = 0;                                                                     \
		_Pragma("unroll") for (u32 bit = SEARCH_STEPS; bit > 0; bit--)                     \
		{                                                                                  \
			u64 step = 1ULL << (bit - 1);                                              \
			u64 next = place + step;                                                   \
			u64 inside = (next - (count)) >> 63;                                       \
			u32 key = next * inside;                                                   \
			const type *entry = bpf_map_lookup_elem(&map, &key);                       \
			u64 before = entry ? entry->begin : ~0ULL >> 1;                            \
			before = (before - (at) - 1) >> 63;                                        \
			asm volatile("" : "+r"(before));                                           \
			place += step * (inside & before);                                         \
		}                                                                                  \
		(u32) place;                                                                       \
	})

/* What the function at this place of the server's file is for; 0: nobody knows. */
__noinline u32 function_at(u64 at, u64 count)
{
	u32 place = SEARCH(functions, struct function, count, at);
	const struct function *found = bpf_map_lookup_elem(&functions, &place);

	return found && at >= found->begin && at < found->end ? found->part : 0;
}

/* How the caller of this place of the C library is found: `struct unwind_row`, its last word; 0: not known. */
__noinline u32 row_at(u64 at, u64 count)
{
	u32 place = SEARCH(unwind_rows, struct unwind_row, count, at);
	const struct unwind_row *found = bpf_map_lookup_elem(&unwind_rows, &place);

	return found && at >= found->begin ? found->rule : 0;
}

/* Reads memory of the running thread. Zero where it cannot be read. */
static __always_inline bool read_memory(void *to, u32 size, u64 address)
{
	return bpf_probe_read_user(to, size, (void *)address) == 0;
}

/*
 * Leaves a frame of the C library, which is at this place of it. Returns how, as `row_at` does; 0 where nobody
 * knows how, or it cannot be read.
 */
static __always_inline u32 leave_library(u64 at, u64 *ip, u64 *sp, u64 *bp)
{
	/* The call, not what follows it: that may be another function's. */
	u32 rule = row_at(at - 1, table.unwind_rows);

	if (!rule)
		return 0;
	/* Without a branch, of which the verifier would follow both ways in every round. */
	u64 from_bp = (rule & RULE_FROM_BP) / RULE_FROM_BP;
	asm volatile("" : "+r"(from_bp));
	u64 above = *sp + (*bp - *sp) * from_bp + (rule & RULE_OFFSET);
	u64 saved = rule >> RULE_BP_SHIFT & RULE_BP_MASK;
	if (!read_memory(ip, sizeof(*ip), above - 8))
		return 0;
	if (saved && !read_memory(bp, sizeof(*bp), above - saved * 8))
		return 0;
	*sp = above;
	return rule;
}

/* What the stack of the running thread says. `unwound.rs` does the same for a thread that waits already. */
static __always_inline void look_at_stack(const struct target *target, struct task_struct *task,
					  struct stack_says *says)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 ip = regs->ip, sp = regs->sp, bp = regs->bp;
	u64 frame[2] = {};

	says->part = 0;
	says->condition = 0;
	says->left_library = 0;
	for (u32 i = 0; i < LIBRARY_FRAMES; i++) {
		u64 at = ip - target->library;
		if (at >= target->library_bytes) {
			says->left_library = target->library_bytes;
			break;
		}
		u32 rule = leave_library(at, &ip, &sp, &bp);
		if (!rule)
			return;
		says->condition |= rule & RULE_CONDITION;
	}
	for (u32 i = 0; i < SERVER_FRAMES; i++) {
		u64 at = ip - target->load_bias;
		u32 part = function_at(at - 1, table.functions);
		if (part) {
			says->part = part;
			return;
		}
		if (bp < sp || !read_memory(frame, sizeof(frame), bp))
			return;
		sp = bp;
		bp = frame[0];
		ip = frame[1];
	}
}

#endif
