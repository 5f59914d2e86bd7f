/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Statements without a reply of their own: statements of stored programs, and statements that a
 * replica applies. Two server functions run nothing else. Each has a pair of breakpoints.
 */
#include "session.bpf.h"
#include "../nested/shared.h"

char LICENSE[] SEC("license") = "GPL";

/* The skeleton generates a Rust type for what it sees in a section. */
struct nested _nested = {};

/* The most pending function returns that the kernel tracks per thread (MAX_URETPROBE_DEPTH). */
#define DEPTH_MAX 64

/*
 * The running statements. This is no LRU map. Calls at the same place of a stack reuse the same
 * entry, so nothing is left over. A full map is noticed, and does not lose the longest statements.
 * 8192 is enough for 128 sessions at the greatest depth that the kernel tracks.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct frame_key);
	__type(value, struct frame);
} frames SEC(".maps");

/* How many statements run inside each other in a thread (its pid_tgid); none: no entry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u64);
} depths SEC(".maps");

/* The sessions of the server's own threads whose identity was sent: the key is the session. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct session_key);
	__type(value, u64);
} told SEC(".maps");

/* Goes one statement deeper, and says how deep. */
static __always_inline u64 enter_depth(struct target *target)
{
	u64 thread = bpf_get_current_pid_tgid(), first = 1;
	u64 *depth = bpf_map_lookup_elem(&depths, &thread);

	if (depth)
		return ++*depth;
	if (bpf_map_update_elem(&depths, &thread, &first, BPF_ANY))
		count_lost(target, LOST_MAP_FULL, 1);
	return first;
}

/* Leaves the statement at a depth, 0: not known. Those deeper that were not seen to end are lost.
 */
static __always_inline void leave_depth(struct target *target, u64 left)
{
	u64 thread = bpf_get_current_pid_tgid();
	u64 *depth = bpf_map_lookup_elem(&depths, &thread);

	if (!depth)
		return;
	if (!left)
		left = *depth;
	if (*depth > left)
		count_lost(target, LOST_UNREADABLE_SESSION, *depth - left);
	if (left > 1)
		*depth = left - 1;
	else
		bpf_map_delete_elem(&depths, &thread);
}

#define SESSION_TEXT (cfg.query.offset + (cfg.at_text - cfg.query.at))

static __always_inline void on_enter(struct target *target, const struct frame_key *key,
				     struct frame *frame)
{
	u64 thd = frame->thd;

	frame->depth = enter_depth(target);
	if (frame->depth > DEPTH_MAX)
		return;
	if ((cfg.has_text && !read_u64(&frame->session_text, thd + SESSION_TEXT)) ||
	    (cfg.rows_sent && !read_u64(&frame->rows_sent, thd + cfg.rows_sent)) ||
	    (cfg.rows_examined && !read_u64(&frame->rows_examined, thd + cfg.rows_examined)))
		return; /* its end will tell */
	frame->begin_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&frames, key, frame, BPF_ANY))
		count_lost(target, LOST_MAP_FULL, 1);
}

/*
 * A thread of the server itself sends no reply by which the tap would learn who it is. A client's
 * session is left to the tap: here the security context can be that of a routine's definer. To be
 * called before the record of a statement is reserved, so that user space knows the session first.
 */
static __always_inline bool tell_identity(struct target *target, u64 thd, u64 now,
					  bool is_applied)
{
	struct session_key key = {.thd = thd, .tgid = target->tgid};
	u64 id = 0;
	u32 command = 0;

	if (cfg.has_command)
		bpf_probe_read_user(&command, sizeof(command), (void *)(thd + cfg.command));
	if (!is_applied && (!cfg.has_command || runs_statement(command)))
		return true;
	if (cfg.has_id)
		bpf_probe_read_user(&id, sizeof(u32), (void *)(thd + cfg.id));
	u64 *known = bpf_map_lookup_elem(&told, &key);
	if (known && *known == id)
		return true;
	if (!send_identity(target, thd, now, id, 0, 0))
		return false;
	if (bpf_map_update_elem(&told, &key, &id, BPF_ANY))
		count_lost(target, LOST_MAP_FULL, 1);
	return true;
}

static __always_inline bool fill(struct statement *record, const u8 *query,
				 const struct frame *frame, bool is_applied)
{
	struct nested *nested =
	    (struct nested *)(record->data + cfg.data_length - sizeof(struct nested));
	u64 diagnostics = 0;

	nested->begin_ns = frame->begin_ns;
	nested->rows_sent = frame->rows_sent;
	nested->rows_examined = frame->rows_examined;
	nested->is_applied = is_applied;
	copy_stack_span(record, &cfg.query, query);
	if ((cfg.has_diagnostics && !read_u64(&diagnostics, frame->thd + cfg.diagnostics)) ||
	    (cfg.has_status && bpf_probe_read_user(record->data + cfg.status.at, cfg.status.length,
						   (void *)(diagnostics + cfg.status.offset))) ||
	    !read_spans(record, frame->thd, cfg.session_spans, cfg.session) ||
	    !read_spans(record, diagnostics, cfg.diagnostics_spans, cfg.diagnostics_span))
		return false;
	nested->database_length = read_database(nested->database, record);
	return true;
}

static __always_inline void send_nested(struct target *target, const struct frame *frame,
					bool is_applied)
{
	u8 query[STACK_SPAN_MAX] __attribute__((aligned(8)));
	u64 text, length;

	if (cfg.has_text &&
	    bpf_probe_read_user(query, cfg.query.length, (void *)(frame->thd + cfg.query.offset))) {
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
		return;
	}
	text_of(query, &text, &length);
	/* EXECUTE puts its own statement into the session: that one says more. */
	if (cfg.has_text && frame->text && (is_applied || text == frame->session_text)) {
		text = frame->text;
		length = frame->text_length;
		*(u64 *)(query + (cfg.at_text - cfg.query.at)) = text;
		*(u64 *)(query + (cfg.at_text_length - cfg.query.at)) = length;
	}
	if (!tell_identity(target, frame->thd, bpf_ktime_get_ns(), is_applied))
		return;
	/* Later than that of the identity, which may lie in another ring. */
	u64 now = bpf_ktime_get_ns();
	struct statement *record = reserve_statement(target, RECORD_NESTED, now, length, 0);

	if (!record)
		return;
	record->head.thd = frame->thd;
	if (!fill(record, query, frame, is_applied)) {
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
		discard(&record->head);
		return;
	}
	read_text(target, record, text, length);
	submit(&record->head);
}

static __always_inline int on_leave(struct pt_regs *ctx, bool is_applied)
{
	struct target *target = current_target();
	/* The return address has been taken from the stack (x86-64). */
	struct frame_key key = {.stack = ctx->sp - 8, .tgid = current_tgid()};
	struct frame frame = {};

	if (!target)
		return 0;
	struct frame *known = bpf_map_lookup_elem(&frames, &key);
	if (known) {
		frame = *known;
		bpf_map_delete_elem(&frames, &key);
	}
	leave_depth(target, frame.depth);
	if (!known && (!current_session(&frame.thd) || !frame.thd))
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
	else
		send_nested(target, &frame, is_applied);
	return 0;
}

/* sp_instr_stmt::exec_core(THD *, uint *): one statement of a stored program, and nothing else. */
SEC("uprobe")
int BPF_UPROBE(on_routine, u64 instruction, u64 thd)
{
	struct target *target = current_target();
	struct frame_key key = {.stack = ctx->sp, .tgid = current_tgid()};
	struct frame frame = {.thd = thd};
	u64 text[2] = {};

	if (!target || !thd)
		return 0;
	/* The session's text has values in place of the routine's variables, in some settings. */
	if (cfg.instruction_text &&
	    bpf_probe_read_user(text, sizeof(text), (void *)(instruction + cfg.instruction_text)) ==
		0) {
		frame.text = text[0];
		frame.text_length = text[1];
	}
	on_enter(target, &key, &frame);
	return 0;
}

SEC("uretprobe")
int on_routine_end(struct pt_regs *ctx)
{
	return on_leave(ctx, false);
}

/*
 * Query_log_event::do_apply_event(info, const char *, length): one statement of the binary log.
 * The session is given up before it returns, so the text is kept from the arguments.
 */
SEC("uprobe")
int BPF_UPROBE(on_apply, u64 event, u64 info, u64 text, u64 text_length)
{
	struct target *target = current_target();
	struct frame_key key = {.stack = ctx->sp, .tgid = current_tgid()};
	/* MariaDB passes 32 bits. */
	struct frame frame = {.text = text, .text_length = (u32)text_length};

	if (!target)
		return 0;
	if (!current_session(&frame.thd) || !frame.thd)
		count_lost(target, LOST_UNREADABLE_SESSION, 1);
	else
		on_enter(target, &key, &frame);
	return 0;
}

SEC("uretprobe")
int on_apply_end(struct pt_regs *ctx)
{
	return on_leave(ctx, true);
}
