/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A cost of known size: each time that a thread of one process begins to send, a loop that is busy for
 * so long.
 *
 * It hangs on a tracepoint, since a breakpoint would itself cost more than what is to be injected; and
 * on the begin of a send, since after one some of the time was charged to the client that it woke: see
 * README.md.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/*
 * The process, and how long a thread of it is busy. Both are set while the program is attached. It is
 * the only variable, so that it is where its section begins.
 */
struct {
	__u32 process;
	__u32 busy_ns;
} injected;

/* How often a thread of the process was busy for as long as was set, and how long by the clock here. */
struct runs {
	__u64 count;
	__u64 busy_ns;
};

/* By processor. It is no variable: user space writes those whole, also while the program runs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runs);
} runs SEC(".maps");

/* `send(2)` is this system call on x86-64 (`arch/x86/entry/syscalls/syscall_64.tbl`). */
#define SENDTO 44

/* A look at the clock takes some 20 ns: more looks than the longest loop needs. */
#define LOOKS_MAX 16384

/* Lets so much time pass, and gives how much it was; negative where that was not to be reached. */
static __always_inline __s64 be_busy(__u32 busy_ns)
{
	__u64 begin_ns, passed_ns;

	begin_ns = bpf_ktime_get_ns();
	for (int look = 0; look < LOOKS_MAX; look++) {
		passed_ns = bpf_ktime_get_ns() - begin_ns;
		if (passed_ns >= busy_ns)
			return passed_ns;
	}
	return -1;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_send, void *registers, long call)
{
	__u32 only = 0;
	struct runs *sum;
	__s64 passed_ns;

	if (call != SENDTO)
		return 0;
	if (bpf_get_current_pid_tgid() >> 32 != injected.process)
		return 0;
	passed_ns = be_busy(injected.busy_ns);
	if (passed_ns < 0)
		return 0;
	sum = bpf_map_lookup_elem(&runs, &only);
	if (sum) {
		__sync_fetch_and_add(&sum->count, 1);
		__sync_fetch_and_add(&sum->busy_ns, passed_ns);
	}
	return 0;
}
