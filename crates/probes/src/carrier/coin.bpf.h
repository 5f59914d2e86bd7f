/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A trial of what looking costs: what is collected of a statement is decided by a coin. Where no trial is
 * asked for, no such map exists, and no program has any of this.
 */
#ifndef WAGGLE_COIN_BPF_H
#define WAGGLE_COIN_BPF_H

#include "target.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct coin);
} coins SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trial);
} trials SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SHAPES_MAX);
	__type(key, u32);
	__type(value, struct shape);
} shapes SEC(".maps");

static __always_inline struct trial *the_trial(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&trials, &zero);
}

/* What is collected of the statement that a thread runs. */
static __always_inline u32 collected_of(struct task_struct *task)
{
	if (!cfg.has_trial)
		return COLLECT_ALL;
	struct coin *coin = bpf_task_storage_get(&coins, task, NULL, 0);

	return coin && coin->begun_ns ? coin->collectors : COLLECT_ALL;
}

#endif
