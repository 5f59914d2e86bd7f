// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * How long each thread of a trial is off the processor. The tap's program does the rest (tap/toss.bpf.h).
 */
#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "coin.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The skeleton generates a Rust type for what it sees in a section. */
struct trial *_trial;
struct shape *_shape;

SEC("tp_btf/sched_switch")
int BPF_PROG(on_turn, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 now = bpf_ktime_get_ns();
	struct coin *coin = bpf_task_storage_get(&coins, prev, NULL, 0);

	if (coin)
		coin->left_ns = now;
	coin = bpf_task_storage_get(&coins, next, NULL, 0);
	if (coin && coin->left_ns) {
		coin->off_ns += now - coin->left_ns;
		coin->left_ns = 0;
	}
	return 0;
}
