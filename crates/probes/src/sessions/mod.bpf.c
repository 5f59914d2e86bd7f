// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Walks the threads of one process and writes a row for each: where its thread-local storage is,
 * how often it gave up the processor, whether it sleeps. User space reads the sessions.
 * An iterator runs when its file is read. Nothing is attached, and nobody else pays. Since 6.1 the
 * kernel can choose the process (bpf_iter_link_info.task.pid); older kernels walk all threads.
 */
#include "kernel.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct task_struct___iter {
	int pid;
	int tgid;
	struct thread_struct thread;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 start_time;
	unsigned int __state;
} __attribute__((preserve_access_index));

/* 5.14 renamed the state (2f064a59a11f, "sched: Change task_struct::state"). */
struct task_struct___old {
	long state;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct___iter *task;
} __attribute__((preserve_access_index));

/* Read by src/sessions/threads.rs, word by word. */
struct row {
	u64 thread_pointer;
	u64 switches;
	u64 started;
	u32 tid;
	u32 tgid;
	u64 asleep;
};
_Static_assert(sizeof(struct row) == 40, "threads.rs reads rows of 40 bytes");

/* S and D of proc_pid_stat(5). What is stopped, traced, frozen or dead does not wait for anything. */
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2

static bool is_asleep(struct task_struct___iter *task)
{
	struct task_struct___old *old = (void *)task;
	long state = bpf_core_field_exists(task->__state) ? task->__state
							   : BPF_CORE_READ(old, state);

	return state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE);
}

SEC("iter/task")
int on_thread(struct bpf_iter__task *ctx)
{
	struct task_struct___iter *task = ctx->task;
	struct row row = {};

	if (!task)
		return 0;
	row.thread_pointer = task->thread.fsbase;
	row.switches = task->nvcsw + task->nivcsw;
	row.started = task->start_time;
	row.tid = task->pid;
	row.tgid = task->tgid;
	row.asleep = is_asleep(task);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}
