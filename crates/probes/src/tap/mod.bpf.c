/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The tap: when a session thread of the server has sent a reply, copy what the server knows of the
 * statement out of its own memory.
 *
 * One body, one thin program for each rung of the ladder; user space loads exactly one of them.
 * Only a reply whose status is set can end a statement; whether it did is decided in user space
 * (fold.rs).
 */
#include "session.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EINTR 4
#define EAGAIN 11
#define ERESTARTSYS 512

#define COM_CONNECT 11
#define COM_CHANGE_USER 17
#define SERVER_MORE_RESULTS_EXISTS 8

#define S_IFMT 0170000
#define S_IFSOCK 0140000

/* The skeleton generates a Rust type for what it sees in a section. */
struct identity _identity = {};
struct session _session = {};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct session_key);
	__type(value, struct session);
} sessions SEC(".maps");

/* A send of a reply that goes on: keep its size and the time of its first byte. */
static __always_inline void on_partial_send(u32 tgid, u64 thd, s64 result)
{
	struct session_key key = { .thd = thd, .tgid = tgid };
	u64 start;

	if (result <= 0 || !read_u64(&start, thd + cfg.start))
		return;
	struct session *known = bpf_map_lookup_elem(&sessions, &key);
	if (known && known->start == start) {
		known->bytes += result;
		return;
	}
	u64 now = bpf_ktime_get_ns();
	if (known) {
		known->start = start;
		known->bytes = result;
		known->first_byte_ns = now;
		return;
	}
	/* An id that no session has makes the next reply tell who this is. */
	struct session fresh = {
		.id = ~0ULL, .start = start, .bytes = result, .first_byte_ns = now,
	};
	if (bpf_map_update_elem(&sessions, &key, &fresh, BPF_ANY))
		count_lost(LOST_MAP_FULL);
}

/*
 * What is known of the session beyond this reply: its identity, sent when it changed, and what its
 * reply sent before.
 */
static __always_inline bool join_session(struct statement *record)
{
	struct session_key key = { .thd = record->head.thd, .tgid = record->head.tgid };
	struct session *known = bpf_map_lookup_elem(&sessions, &key);
	struct session now = {
		.id = DATA(u32, record, cfg.at_id),
	};

	if (cfg.has_database) {
		now.database = DATA(u64, record, cfg.at_database);
		now.database_length = DATA(u64, record, cfg.at_database_length);
	}
	if (known && known->start) {
		if (known->start == DATA(u64, record, cfg.at_start)) {
			record->head.bytes += known->bytes;
			record->head.first_byte_ns = known->first_byte_ns;
		}
		known->start = 0;
	}
	/* Inside a routine the security context can be the definer's: wait for its last reply. */
	if (cfg.has_server_status &&
	    (DATA(u32, record, cfg.at_server_status) & SERVER_MORE_RESULTS_EXISTS))
		return true;
	u32 command = DATA(u32, record, cfg.at_command);
	if (known && known->id == now.id && known->database == now.database &&
	    known->database_length == now.database_length && command != COM_CONNECT &&
	    command != COM_CHANGE_USER)
		return true;
	if (!send_identity(record->head.tgid, record->head.thd, &now))
		return false;
	if (bpf_map_update_elem(&sessions, &key, &now, BPF_ANY))
		count_lost(LOST_MAP_FULL);
	return true;
}

static __always_inline void on_reply(u32 tgid, u64 thd, u64 diagnostics, const u8 *status, s64 result)
{
	u8 query[STACK_SPAN_MAX];
	u64 now = bpf_ktime_get_ns();

	if (bpf_probe_read_user(query, cfg.query.length, (void *)(thd + cfg.query.offset))) {
		count_lost(LOST_UNREADABLE_SESSION);
		return;
	}
	u64 text = *(u64 *)(query + (cfg.at_text - cfg.query.at));
	u64 length = *(u64 *)(query + (cfg.at_text_length - cfg.query.at));
	u32 room = room_for(length);
	struct statement *record =
		bpf_ringbuf_reserve(&ring, sizeof(*record) + cfg.data_length + room, 0);

	if (!record) {
		count_lost(LOST_RING_FULL);
		return;
	}
	record->head.kind = RECORD_STATEMENT;
	record->head.tgid = tgid;
	record->head.thd = thd;
	record->head.end_ns = now;
	record->head.first_byte_ns = 0;
	record->head.bytes = result > 0 ? result : 0;
	record->head.result = result;
	copy_stack_span(record, &cfg.query, query);
	copy_stack_span(record, &cfg.status, status);
	if (!read_spans(record, thd, cfg.session_spans, cfg.session) ||
	    !read_spans(record, diagnostics, cfg.diagnostics_spans, cfg.diagnostics_span)) {
		count_lost(LOST_UNREADABLE_SESSION);
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return;
	}
	if (!join_session(record)) {
		count_lost(LOST_RING_FULL);
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return;
	}
	read_text(record, text, length, room);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* A send by the running thread of a target, of `result` bytes or with an error. */
static __always_inline void on_session_send(u32 tgid, u64 thd, s64 result)
{
	u8 status[STACK_SPAN_MAX];
	u64 diagnostics;

	/* Not sent yet: the server tries again. */
	if (result == -EAGAIN || result == -EINTR || result == -ERESTARTSYS)
		return;
	if (!read_u64(&diagnostics, thd + cfg.diagnostics) ||
	    bpf_probe_read_user(status, cfg.status.length,
				(void *)(diagnostics + cfg.status.offset))) {
		count_lost(LOST_UNREADABLE_SESSION);
		return;
	}
	if (*(u32 *)(status + (cfg.at_status - cfg.status.at)) == cfg.status_empty)
		on_partial_send(tgid, thd, result);
	else
		on_reply(tgid, thd, diagnostics, status, result);
}

static __always_inline int on_send_by_current(u32 tgid, s64 result)
{
	u64 thd;

	if (!current_session(&thd))
		count_lost(LOST_UNREADABLE_SESSION);
	else if (thd)
		on_session_send(tgid, thd, result);
	return 0;
}

/* Kernel 6.3 and later: fires after every send call on any socket, of any kind. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int result, int flags)
{
	u32 tgid = current_tgid();

	return is_target(tgid) ? on_send_by_current(tgid, result) : 0;
}

/*
 * Kernel 5.5 to 6.4, before sock_send_length: the function that every send call passes through;
 * user space names the one that this kernel has (program.rs).
 */
SEC("fexit/sock_sendmsg")
int BPF_PROG(on_sendmsg, struct socket *socket, struct msghdr *message, int result)
{
	u32 tgid = current_tgid();

	return is_target(tgid) ? on_send_by_current(tgid, result) : 0;
}

/* The numbers of the calls that send, on x86-64. */
#define NR_WRITE 1
#define NR_WRITEV 20
#define NR_SENDTO 44
#define NR_SENDMSG 46

/* Files are written with the same calls as sockets: the binary log, for one. */
static __always_inline bool is_socket(u32 fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return false;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file && (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
}

/* Any kernel: the end of every system call, of which those that send are looked at. */
SEC("raw_tp/sys_exit")
int on_sys_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tgid = current_tgid();

	if (!is_target(tgid))
		return 0;
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	u64 call = BPF_CORE_READ(regs, orig_ax);
	if (call != NR_SENDTO && call != NR_SENDMSG) {
		if (call != NR_WRITE && call != NR_WRITEV)
			return 0;
		if (!is_socket(BPF_CORE_READ(regs, di)))
			return 0;
	}
	return on_send_by_current(tgid, (s64)ctx->args[1]);
}

/*
 * The last rung, a breakpoint: log_slow_statement(THD *), which the server calls once at the end of
 * a statement, after the reply. The size of the reply is not known here.
 */
SEC("uprobe")
int BPF_UPROBE(on_end, u64 thd)
{
	u32 tgid = current_tgid();

	if (is_target(tgid) && thd)
		on_session_send(tgid, thd, 0);
	return 0;
}
