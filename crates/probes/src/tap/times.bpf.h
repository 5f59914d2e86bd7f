/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Times of a trial, in buckets. */
#ifndef WAGGLE_TAP_TIMES_BPF_H
#define WAGGLE_TAP_TIMES_BPF_H

#include "coin.bpf.h"

static __always_inline u32 power_of(u64 value)
{
	u32 power = 0;

#pragma unroll
	for (u32 step = 32; step; step /= 2) {
		if (value >> step) {
			value >>= step;
			power += step;
		}
	}
	return power;
}

/* The bucket of a time; what is shorter or longer than all counts in the first or the last. */
static __always_inline u32 bucket_of(u64 ns)
{
	u32 power = power_of(ns);

	if (power < TIME_FIRST)
		return 0;
	u32 bucket = ((power - TIME_FIRST) << TIME_SHIFT) +
		     ((ns >> (power - TIME_SHIFT)) & ((1 << TIME_SHIFT) - 1));
	return bucket < TIME_BUCKETS ? bucket : TIME_BUCKETS - 1;
}

static __always_inline void add_time(struct times *times, u64 ns)
{
	u32 place = bucket_of(ns);

	if (place >= TIME_BUCKETS)
		return;
	struct bucket *bucket = &times->bucket[place];
	__sync_fetch_and_add(&bucket->count, 1);
	__sync_fetch_and_add(&bucket->sum_ns, ns);
}

#endif
