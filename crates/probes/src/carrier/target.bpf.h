/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The layout of a program, and the servers that are watched. */
#ifndef WAGGLE_TARGET_BPF_H
#define WAGGLE_TARGET_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include "shared.h"

const volatile struct config cfg;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct targets);
} targets SEC(".maps");

static __always_inline u32 current_tgid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

/* The target that is this process; NULL where it is none. */
static __always_inline struct target *target_of(u32 tgid)
{
	u32 zero = 0;
	struct targets *all = bpf_map_lookup_elem(&targets, &zero);

	if (!all)
		return NULL;
#pragma unroll
	for (u32 i = 0; i < TARGET_TRIES; i++) {
		struct target *target = &all->target[(tgid + i) % TARGET_PLACES];
		if (target->tgid == tgid)
			return target;
	}
	return NULL;
}

/* The target that the running thread belongs to; NULL where it belongs to none. */
static __always_inline struct target *current_target(void)
{
	return target_of(current_tgid());
}

/* The target that the running thread belongs to, where it has the layout of this program. */
static __always_inline struct target *served_target(void)
{
	struct target *target = current_target();

	return target && target->program == cfg.program ? target : NULL;
}

static __always_inline void count_lost(struct target *target, enum lost_kind kind, u64 count)
{
	__sync_fetch_and_add(&target->lost[kind], count);
}

#endif
