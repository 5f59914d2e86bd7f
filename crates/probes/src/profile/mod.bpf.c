// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Where processor time goes: the clock of each processor ticks, and if a thread of a server runs there
 * then, its session and its stacks are written down.
 *
 * It runs in the interrupt of the clock, so memory is only read where it is present, and it may come
 * in the middle of another program: only its ring place is shared with those.
 */
#include "session.bpf.h"
#include "../profile/shared.h"

char LICENSE[] SEC("license") = "GPL";

/* The skeleton generates a Rust type for what it sees in a section. */
struct sample _sample = {};

/* What tells the statement that runs; a session that cannot be read is none. */
static __always_inline void read_session(struct sample *sample)
{
	u64 thd = 0;
	u32 id = 0, command = 0;

	sample->id = 0;
	sample->start = 0;
	sample->command = 0;
	sample->head.thd = 0;
	if (!current_session(&thd) || !thd)
		return;
	if (cfg.has_id && bpf_probe_read_user(&id, sizeof(id), (void *)(thd + cfg.id)))
		return;
	if (cfg.has_start && !read_u64(&sample->start, thd + cfg.start))
		return;
	if (cfg.has_command)
		bpf_probe_read_user(&command, sizeof(command), (void *)(thd + cfg.command));
	sample->id = id;
	sample->command = command;
	sample->head.thd = thd;
}

SEC("perf_event")
int on_sample(void *ctx)
{
	struct target *target = served_target();

	if (!target)
		return 0;
	/* Before the place is taken: the order of the rings rests on it. */
	u64 now = bpf_ktime_get_ns();
	struct sample *sample =
		reserve_of(target, RECORD_SAMPLE, sizeof(*sample), now, LOST_SAMPLE);

	if (!sample)
		return 0;
	sample->tid = (u32)bpf_get_current_pid_tgid();
	bpf_get_current_comm(sample->thread_name, sizeof(sample->thread_name));
	read_session(sample);
	sample->user_bytes =
		bpf_get_stack(ctx, sample->user, sizeof(sample->user), BPF_F_USER_STACK);
	sample->kernel_bytes = bpf_get_stack(ctx, sample->kernel, sizeof(sample->kernel), 0);
	sample->took_ns = bpf_ktime_get_ns() - now;
	submit(&sample->head);
	return 0;
}
