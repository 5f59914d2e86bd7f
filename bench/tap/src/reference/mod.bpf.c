/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The reference: what others do. A breakpoint at the start of dispatch_command notes the time and
 * where the text is, one at its return writes a ring record with latency, command and text.
 *
 * Written to be cheap, so that the comparison is not won by a weak opponent: no wake-up per record
 * (the reader comes on a timer, as waggle does), one hash map, two user reads and the text, fewer
 * fields than the tap has (no rows, user, database, error).
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

#define COM_QUERY 3
#define TEXT_MAX 512

/* MariaDB: dispatch_command(command, thd, packet, length, …). MySQL: (thd, com_data, command). */
const volatile __u32 text_in_arguments = 0;

/* Records that did not fit into the ring, and calls that did not fit into the map. */
__u64 lost = 0;

/* The start of `union COM_DATA` for COM_QUERY (MySQL, include/mysql/com_data.h). */
struct com_query {
	__u64 query;
	__u32 length;
	__u32 _padding;
};

struct call {
	__u64 start_ns;
	__u64 text;
	__u32 length;
	__u32 command;
};

struct record {
	__u64 start_ns;
	__u64 end_ns;
	__u32 command;
	__u32 length;
	char text[TEXT_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
} ring SEC(".maps");

SEC("uprobe")
int on_dispatch(struct pt_regs *ctx)
{
	struct call call = { .start_ns = bpf_ktime_get_ns() };
	__u32 thread = bpf_get_current_pid_tgid();

	if (text_in_arguments) {
		call.command = PT_REGS_PARM1(ctx);
		call.text = PT_REGS_PARM3(ctx);
		call.length = PT_REGS_PARM4(ctx);
	} else {
		struct com_query data = {};

		call.command = PT_REGS_PARM3(ctx);
		bpf_probe_read_user(&data, sizeof(data), (void *)PT_REGS_PARM2(ctx));
		call.text = data.query;
		call.length = data.length;
	}
	if (bpf_map_update_elem(&calls, &thread, &call, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

SEC("uretprobe")
int on_dispatched(struct pt_regs *ctx)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct call *call = bpf_map_lookup_elem(&calls, &thread);
	struct record *record;

	if (!call)
		return 0;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	record->start_ns = call->start_ns;
	record->end_ns = bpf_ktime_get_ns();
	record->command = call->command;
	record->length = 0;
	/* An executed statement has no text here: that is the blind spot of this way. */
	if (call->command == COM_QUERY) {
		__u32 length = call->length;

		if (length > TEXT_MAX)
			length = TEXT_MAX;
		if (!bpf_probe_read_user(record->text, length, (void *)call->text))
			record->length = length;
	}
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}
