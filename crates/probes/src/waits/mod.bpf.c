/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Why a session's thread is not on a processor. One program runs when any thread leaves one. Where
 * that is a thread of a watched server that serves a session, it accounts the time off the processor
 * before this one, and notes what the thread waits for now.
 */
#include "parts.bpf.h"
#include "coin.bpf.h"
#include "../waits/shared.h"

const volatile struct tables table;

#include "../waits/frames.bpf.h"
#include "../waits/stage.bpf.h"
#include "../waits/stacks.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The skeleton generates a Rust type for what it sees in a section. */
struct function _function = {};
struct unwind_row _unwind_row = {};
struct look_row _look_row = {};
struct wait _wait = {};
struct wait_stack _wait_stack = {};
struct rests _rests = {};
struct thread_row _thread_row = {};
struct note _note = {};

#define POLLOUT 4

/* By the pollfd that a thread waits for: it has room for what the thread wants to send. */
static __always_inline u32 part_of_polled(u64 polled)
{
	/* int fd; short events; short revents; */
	return polled >> 32 & POLLOUT ? PART_NETWORK_WRITE : PART_NETWORK_READ;
}

/* No parts: what says it stands in memory. */
#define BY_STACK 0
#define BY_POLLED (PARTS + 1)

/* By the system call, x86-64. */
static __always_inline u32 part_of_call(struct task_struct *task, s64 call)
{
	bool for_disk = BPF_CORE_READ_BITFIELD(task, in_iowait);

	switch (call) {
	case 7: /* poll */
	case 271: /* ppoll */
		return BY_POLLED;
	case 0: /* read */
		return for_disk ? PART_DISK_READ : PART_NETWORK_READ;
	case 45: /* recvfrom */
	case 47: /* recvmsg */
	case 232: /* epoll_wait */
	case 281: /* epoll_pwait */
		return PART_NETWORK_READ;
	case 1: /* write */
		return for_disk ? PART_DISK_WRITE : PART_NETWORK_WRITE;
	case 20: /* writev */
	case 44: /* sendto */
	case 46: /* sendmsg */
		return PART_NETWORK_WRITE;
	case 26: /* msync */
	case 74: /* fsync */
	case 75: /* fdatasync */
	case 277: /* sync_file_range */
		return PART_SYNC;
	case 17: /* pread64 */
	case 19: /* readv */
	case 208: /* io_getevents */
	case 295: /* preadv */
	case 327: /* preadv2 */
	case 333: /* io_pgetevents */
	case 426: /* io_uring_enter */
	case 2: /* open */
	case 4: /* stat */
	case 5: /* fstat */
	case 217: /* getdents64 */
	case 257: /* openat */
	case 262: /* newfstatat */
		return PART_DISK_READ;
	case 18: /* pwrite64 */
	case 209: /* io_submit */
	case 296: /* pwritev */
	case 328: /* pwritev2 */
	case 76: /* truncate */
	case 77: /* ftruncate */
	case 82: /* rename */
	case 87: /* unlink */
	case 263: /* unlinkat */
	case 264: /* renameat */
	case 285: /* fallocate */
	case 316: /* renameat2 */
		return PART_DISK_WRITE;
	case 23: /* select */
	case 35: /* nanosleep */
	case 202: /* futex */
	case 230: /* clock_nanosleep */
	case 270: /* pselect6 */
		return BY_STACK;
	}
	if (for_disk)
		return PART_DISK_READ;
	switch (call) {
	case -1: /* a page fault */
	case 9: /* mmap */
	case 10: /* mprotect */
	case 11: /* munmap */
	case 12: /* brk */
	case 25: /* mremap */
	case 28: /* madvise */
		return PART_LATCH; /* the lock of the memory of the process */
	}
	return PART_OTHER;
}

#define CALL_FUTEX 202

/* What the stack and the state of the session say together. */
static __always_inline u32 part_of_both(const struct stack_says *says, u32 by_stage, s64 call)
{
	u32 part = says->part;

	/* A lock of GET_LOCK is a metadata lock, too: only the state tells. */
	if (part && by_stage == PART_USER_LOCK)
		return by_stage;
	/* Who waits for such a lock has a state and waits for a condition, else for the latch of the list of locks. */
	if (part)
		return by_stage || says->condition || !cfg.has_state ? part : PART_LATCH;
	if (by_stage)
		return by_stage;
	/* Where the library is not known, it may be a condition. */
	return call == CALL_FUTEX && says->left_library && !says->condition ? PART_LATCH : PART_OTHER;
}

/* Whether the state of the session can add nothing. */
static __always_inline bool says_all(const struct stack_says *says)
{
	return says->part && says->part != PART_METADATA_LOCK;
}

/* `__state`: by a signal, by a debugger, since 6.1 by the freezer of version 1 (include/linux/sched.h). */
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_FROZEN 0x8000
/* `flags`: by that freezer before 6.1. */
#define PF_FROZEN 0x10000

/* Whether somebody holds a thread that is off the processor. */
static __always_inline bool is_stopped(struct task_struct *task)
{
	return task->__state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN) ||
	       task->flags & PF_FROZEN ||
	       (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen));
}

/* What the running thread is going to wait for, which serves a session. */
static __always_inline u32 part_of_wait(const struct target *target, struct task_struct *task, u64 thd)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	s64 call = regs->orig_ax;
	u32 part = part_of_call(task, call);
	struct stack_says says;
	u64 polled = 0;

	if (is_stopped(task))
		return PART_STOPPED;
	if (part == BY_POLLED) {
		read_memory(&polled, sizeof(polled), regs->di);
		return part_of_polled(polled);
	}
	if (part != BY_STACK)
		return part;
	look_at_stack(target, task, &says);
	return says_all(&says) ? says.part : part_of_both(&says, part_of_stage(thd), call);
}

/* Start and command lie near each other in all builds: they are read at once where that holds. */
#define NEAR 120

static __always_inline bool read_statement(u64 thd, u64 *start, u32 *command)
{
	u32 low = (cfg.start < cfg.command ? cfg.start : cfg.command) & ~7;
	u32 high = cfg.start < cfg.command ? cfg.command : cfg.start;
	u64 near[NEAR / 8 + 1] = {};

	if (!cfg.has_command)
		return read_memory(start, sizeof(*start), thd + cfg.start);
	if (high - low > NEAR - 8)
		return read_memory(start, sizeof(*start), thd + cfg.start) &&
		       read_memory(command, sizeof(*command), thd + cfg.command);
	if (!read_memory(near, high - low + 8, thd + low))
		return false;
	*start = *(u64 *)((u8 *)near + (cfg.start - low));
	*command = *(u32 *)((u8 *)near + (cfg.command - low));
	return true;
}

#define COM_SLEEP 0

/* A thread that serves session `thd` is off the processor: `part` says why, 0: nothing. */
static __always_inline void leave(struct parts *parts, struct task_struct *task, u32 command,
				  bool serves, u32 part)
{
	bool rests = !serves || (cfg.has_command && command == COM_SLEEP) || parts->replied;

	/* The end of a reply that waits for its client is no rest, also while somebody holds its thread. */
	if (part != PART_STOPPED || !parts->replied)
		parts->is_between = rests && part != PART_NETWORK_WRITE;
	parts->part = part;
	parts->run_delay = task->sched_info.run_delay;
	if (!parts->is_between)
		return;
	read_usage(parts->next.usage, task);
	if (part != PART_NETWORK_READ && serves)
		return;
	/* It waits for its next request: what it did since its reply is over. */
	parts->next.queue_ns = 0;
	if (parts->replied_ns) {
		u64 since = bpf_ktime_get_ns() - parts->replied_ns;
		parts->next.after_reply_ns =
			since > parts->off_after_reply ? since - parts->off_after_reply : 0;
	}
	parts->replied_ns = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct target *target = current_target();

	if (!target || target->parts_program != cfg.program || !scheduler_tells())
		return 0;
	struct session *session = bpf_task_storage_get(&sessions, prev, NULL, 0);
	if (!session || session->parts.turn != target->turn)
		return 0;
	u32 collected = collected_of(prev);
	if (!(collected & COLLECT_WAITS))
		return 0;
	struct parts *parts = &session->parts;
	u64 thd = 0, start = 0;
	u32 command = 0, part = PART_RUN_QUEUE;

	close_parts(parts, prev);
	if (!current_session(&thd))
		thd = parts->thd;
	if (thd && !read_statement(thd, &start, &command)) {
		start = parts->start;
		command = COM_SLEEP + 1;
	}
	if (thd)
		begin_parts(parts, thd, start);
	bool waits = !preempt && prev->__state;
	parts->switches += waits ? 1 : 1ULL << 32;
	if (waits)
		part = part_of_wait(target, prev, thd);
	if (is_lock(part))
		tell_wait(thd, start, part, 0);
	leave(parts, prev, command, thd != 0, part);
	if (table.tells_stacks && collected & COLLECT_WAIT_STACKS)
		tell_stack(ctx, target, parts, prev, thd, start, command);
	parts->left = prev->se.cfs_rq->rq->clock;
	return 0;
}

/* A thread is moved to another processor: of one that sleeps nobody knows for how long it is queued. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_move, struct task_struct *task, int processor)
{
	if (!bpf_core_field_exists(task->se.sched_delayed) || !task->se.sched_delayed)
		return 0;
	struct target *target = target_of(task->tgid);
	if (!target || target->parts_program != cfg.program)
		return 0;
	struct session *session = bpf_task_storage_get(&sessions, task, NULL, 0);
	if (session && session->parts.turn == target->turn)
		session->parts.run_delay = RUN_DELAY_UNKNOWN;
	return 0;
}

#include "../waits/threads.bpf.h"
