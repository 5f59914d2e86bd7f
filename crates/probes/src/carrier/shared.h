/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What both halves of every probe see. The Rust types are generated from these. */
#ifndef WAGGLE_CARRIER_SHARED_H
#define WAGGLE_CARRIER_SHARED_H

#define TARGET_PLACES 256
#define TARGET_TRIES 4
#define SPANS_MAX 6
#define STATEMENTS_MAX 4
#define USER_MAX 128
#define HOST_MAX 256
#define DATABASE_MAX 256
/* A path of a unix socket has 108 bytes; in whole words. */
#define X_SOCKET_MAX 112
/* The query span and the status span pass through the stack. */
#define STACK_SPAN_MAX 128

/* What a record may have behind the end of its ring: no record is longer. */
#define RING_SLACK (72 * 1024)
/* A ring has a power of two of bytes, and holds some records of the longest text. */
#define RING_BYTES_MIN (512 * 1024)

enum record_kind {
	RECORD_NONE = 0, /* given up */
	RECORD_STATEMENT = 1,
	RECORD_IDENTITY = 2,
	RECORD_NESTED = 3,
	RECORD_READY = 4, /* the session waits for its next request: a head and nothing more */
	RECORD_SAMPLE = 5, /* what a thread does on a processor now */
	RECORD_WAIT = 6, /* a wait for a lock begins, or a long one has ended */
	RECORD_LEFT = 7, /* where a thread waits from now on */
	RECORD_RESTS = 8, /* it waits for its next request: the wait before is over */
	RECORD_FATAL = 9, /* a signal that ends the server was sent */
	RECORD_DYING = 10, /* what a session runs when that reaches it; a head alone: it reached the main thread */
};

/* In `state` of a head; zero: not complete. */
#define RECORD_COMPLETE 1

/* What a ring starts with; its records follow. Both sides have a line of the cache of their own. */
struct ring {
	u64 reserved; /* bytes since the start; the kernel writes it */
	u64 unused_a[7];
	u64 consumed; /* the same; user space writes it */
	u64 unused_b[7];
};

enum lost_kind {
	LOST_RING_FULL,
	LOST_UNREADABLE_SESSION,
	LOST_UNREADABLE_TEXT,
	LOST_MAP_FULL,
	LOST_NO_STATEMENT,
	LOST_X_PROTOCOL,
	LOST_SAMPLE,
	LOST_WAIT,
	LOST_KINDS,
};

/* A server that is watched. */
struct target {
	u32 tgid; /* 0: none any more */
	u32 turn; /* of the watching of anything: sessions that were told in another are told again */
	u32 program; /* `cfg.program` of the one that serves it */
	u32 marks_tcp; /* its sockets of TCP clients have the mark of an accepted one: one was seen */
	u32 parts_program; /* `cfg.program` of the one that sees its threads leave the processor; 0: none */
	u32 library_bytes; /* of its C library in memory; 0: its frames are not known */
	u64 load_bias; /* of its own program */
	u64 library; /* where its C library begins */
	u64 lost[LOST_KINDS]; /* every kind of loss has a counter */
	u32 x_port; /* where it accepts clients of the X protocol; 0: nowhere */
	u32 x_socket_length; /* with its zero byte; 0: there is none */
	u8 x_socket[X_SOCKET_MAX];
	u32 untold; /* sessions that its end has reached and that could not be told */
	u32 unused;
};

/*
 * All of them: a process has one of the few places from its number on. A map of the kernel for this
 * costs 100 ns at every send of the host.
 */
struct targets {
	struct target target[TARGET_PLACES];
};

/* Bytes of one object of the server that are copied into a record as they are. */
struct span {
	u32 offset; /* from the start of the object */
	u32 length;
	u32 at; /* in the data of the record */
};

/*
 * One layout. It is constant while a program is loaded, so the verifier sees every offset as a
 * number and drops what a layout does not need: each build of the server gets its own program.
 */
struct config {
	u8 session_by_key;
	u8 zero_ended_strings;
	s64 session_offset; /* from the thread pointer, of a thread-local pointer */
	u64 key_block; /* from the thread pointer, of the pointer to the block of the key */
	u64 key_slot; /* in that block, of the value of the key */

	u32 diagnostics; /* offset in the session of the pointer to the diagnostics area */
	u32 status_empty;
	u32 status_ok;
	u32 status_ok_bulk; /* status_ok where there is no such code */
	u32 status_error;
	u32 start; /* offset in the session */
	u32 statements[STATEMENTS_MAX]; /* the commands that run one */

	struct span query; /* text, its length and the database, as far as they are near */
	struct span status; /* of the diagnostics area */
	u32 session_spans;
	u32 diagnostics_spans;
	struct span session[SPANS_MAX];
	struct span diagnostics_span[SPANS_MAX];

	/* Where the program itself looks into the data of a record. */
	u32 at_text;
	u32 at_text_length;
	u32 at_status;
	u32 at_id;
	u32 at_start;
	u32 at_command;
	u32 at_database;
	u32 at_database_length;
	u32 at_server_status;
	u8 has_database;
	u8 has_server_status;
	u8 has_context;
	u8 has_query_cache;
	u8 tells_ready; /* whether RECORD_READY is asked for */

	u32 context; /* offset in the session of the pointer to the security context */
	u32 user; /* offsets in the security context */
	u32 host;
	u32 address;

	u32 id; /* offsets in the session; 0: not known */
	u32 command;

	/* For nested statements only: offsets in the session and the instruction; 0: not known. */
	u32 rows_sent;
	u32 rows_examined;
	u32 instruction_text;

	/* What this layout knows. The program asks for nothing else. */
	u8 has_text;
	u8 has_status;
	u8 has_diagnostics;
	u8 has_start;
	u8 has_id;
	u8 has_command;
	u8 has_user;
	u8 has_host;
	u8 has_address;

	/* Where the time of a statement went. */
	u8 has_parts;
	u8 has_state;
	u8 has_trial;
	u8 injects; /* a time that is known, in a trial */
	u8 has_shapes; /* a trial also counts by the shapes of the texts */
	u32 state; /* offset in the session of the pointer to the text of its state */

	u32 data_length; /* bytes of all spans in a record */
	u32 text_limit;
	u64 ring_bytes; /* of each ring */
	u32 rings;
	u32 program; /* its number: each serves servers of one layout */
};

/* What a statement of a trial is collected of. Without a trial: all that is asked for. */
#define COLLECT_STATEMENTS 1
#define COLLECT_TEXTS 2 /* whole; else SHORT_TEXT bytes */
#define COLLECT_WAITS 4
#define COLLECT_INJECTED 8 /* no data: the program idles for a time that is known, and else for none */
#define COLLECT_WAIT_STACKS 16
#define COLLECT_ALL (~0U)
#define SHORT_TEXT 256

#define ARMS_MAX 6
/* Buckets for times from 64 ns to 17 s: each power of two has 32. */
#define TIME_SHIFT 5
#define TIME_FIRST 6
#define TIME_BUCKETS (28 << TIME_SHIFT)

struct bucket {
	u64 count;
	u64 sum_ns;
};

struct times {
	struct bucket bucket[TIME_BUCKETS];
};

/*
 * The shape of a text: a hash of its first bytes without numbers and without what stands in quotes. User space makes the same
 * (coin/shape.rs).
 */
#define SHAPE_BYTES 128
#define SHAPES_MAX 128
#define SHAPE_TRIES 32
#define SHAPE_FACTOR 0x100000001b3ULL /* of the hash FNV-1a for 64 bits */

/* The statements of a shape. */
struct shape {
	u64 hash; /* 0: nobody's yet */
	struct times processor[ARMS_MAX]; /* by the arm of the statement */
};

/* A coin chooses one of a few arms for each statement of a server. */
struct trial {
	u64 from[ARMS_MAX]; /* the arm is the last one whose number a random one of 32 bits reaches */
	u32 collectors[ARMS_MAX];
	u32 is_over; /* no statement is collected or counted: it has ended, or not begun yet */
	u32 chosen; /* the arm of every statement; ARMS_MAX: the coin decides */
	u32 window; /* its number; it changes before the arm does */
	u32 unused;
	u64 requests[ARMS_MAX]; /* statements that began, by arm */
	u64 inject_ns; /* 0: none */
	u64 without_room; /* statements whose shape had no place among all shapes */
	u64 injected_ns[ARMS_MAX]; /* in all, by arm */
	/* Processor time of each statement, by the arm of the one before and its own. */
	struct times processor[ARMS_MAX * ARMS_MAX];
	/* From its request to its last send, by its arm. */
	struct times latency[ARMS_MAX];
};

/* By thread: the statement that it runs, and its coin. */
struct coin {
	u64 thd;
	u64 socket; /* the kernel's `struct sock` of its client */
	u64 id; /* of the connection: both addresses may be those of one that ended */
	u64 begun_ns; /* its request was there; 0: no statement has begun since the trial did */
	u64 off_ns; /* off the processor since then */
	u64 left_ns; /* the thread left the processor; 0: it is there */
	u64 sent_ns; /* of its last send; 0: none yet */
	u64 injected_ns;
	u32 arm;
	u32 arm_before; /* ARMS_MAX: there is none */
	u32 collectors;
	u32 window; /* the number of that in which it began */
	u64 shape; /* of its text; 0: not known */
	u64 text_address;
	u64 text_length;
	u8 text[SHAPE_BYTES]; /* where its shape is made */
};

/* What a record starts with. */
struct head {
	u32 state; /* written last */
	u32 kind;
	u32 size; /* of the record, in whole words */
	u32 tgid;
	u64 thd;
	u64 end_ns;
	u64 first_byte_ns; /* 0: end_ns */
	u64 received_ns; /* end of the request's receive; 0: not seen, or the layout has a start */
	u64 bytes;
	s32 result; /* of the send */
	u32 text_length; /* bytes of text in this record */
	u32 text_unreadable;
	u32 program; /* `cfg.program` of the one that wrote it; 0 in RECORD_READY */
	u32 parts_at; /* of a reply, from the start of the record: where its time went; 0: not known */
	u32 unused;
};

/* A wait for a lock. */
struct wait {
	struct head head; /* its `end_ns`: now */
	u64 start; /* of the statement, as the server notes it */
	u64 part;
	u64 ns; /* how long it was; 0: it begins now */
};

struct statement {
	struct head head;
	u8 data[]; /* the spans, then the text, then where the time went */
};

struct identity {
	struct head head;
	u64 id;
	s32 user_length; /* -1: none */
	s32 host_length;
	s32 database_length;
	u32 unused;
	u8 user[USER_MAX];
	u8 host[HOST_MAX];
	u8 database[DATABASE_MAX];
};

/* `TimeClass` of the model, as far as the kernel tells them. */
enum part {
	PART_RUN_QUEUE = 1,
	PART_STOPPED = 2,
	PART_DISK_READ = 3,
	PART_DISK_WRITE = 4,
	PART_SYNC = 5,
	PART_COMMIT = 6,
	PART_NETWORK_READ = 8,
	PART_NETWORK_WRITE = 9,
	PART_ROW_LOCK = 10,
	PART_METADATA_LOCK = 11,
	PART_TABLE_LOCK = 12,
	PART_USER_LOCK = 13,
	PART_SLEEP = 14,
	PART_INNODB_TICKET = 15,
	PART_LATCH = 16,
	PART_OTHER = 17,
	PARTS = 18,
};

/* What a reply tells behind its parts. */
enum part_extra {
	EXTRA_SINCE = PARTS, /* from when on its thread was watched, where that is after its start */
	EXTRA_QUEUE_BEFORE,
	EXTRA_AFTER_REPLY,
	EXTRA_READ_BYTES,
	EXTRA_WRITTEN_BYTES,
	EXTRA_MINOR_FAULTS,
	EXTRA_MAJOR_FAULTS,
	EXTRA_SWITCHES, /* voluntary ones below, forced ones in the upper half */
	PART_WORDS,
};

#define USAGES 4

/* What is known of a statement when it begins. */
struct part_start {
	u64 queue_ns; /* in the run queue since its request was there */
	u64 after_reply_ns; /* of work after the reply before */
	u64 usage[USAGES]; /* of the thread in all: bytes read and written, minor and major faults */
};

/* Where the time of the statement goes that a thread runs. Times by the clock of the run queue, where not said. */
struct parts {
	u64 turn; /* of the target; another: nothing here is known */
	u64 since_ns; /* from when on it is watched, where this statement may have run already; CLOCK_MONOTONIC */
	u64 thd;
	u64 start; /* of the statement, as the server notes it */
	u64 ns[PARTS]; /* off the processor while it ran */
	u64 switches;
	u64 left; /* when the thread left the processor; 0: all is accounted */
	u64 run_delay; /* what the thread had spent in run queues then */
	u64 met; /* `left` of a wait that went on when its thread was watched */
	u64 before_ns; /* how long that one had lasted already */
	u32 part; /* why it left */
	u32 is_between; /* no statement ran then */
	u64 replied; /* its last reply was sent */
	u64 replied_ns; /* when, while the work after it goes on; CLOCK_MONOTONIC */
	u64 off_after_reply;
	u64 told; /* its last wait was told with its stack, and not yet that it is over */
	struct part_start now;
	struct part_start next;
};

/*
 * What the kernel keeps of the session that a thread served last. Where another one is served next,
 * as in a pool of threads, it is forgotten and told again.
 */
struct session {
	u64 thd;
	u64 turn; /* of the target */
	u64 id;
	u64 database;
	u64 database_length;
	u64 start; /* of the statement whose first sends are counted below; 0: none */
	u64 bytes;
	u64 first_byte_ns;
	u64 unended; /* no reply of it with a status was seen, and its command runs one: what is lost then */
	u64 received_ns; /* end of the receive of its request, where the layout has no start */
	u64 cached; /* the query cache may have sent the whole reply; only then as well */
	u64 replied; /* it has not waited for a request since its last reply */
	u64 socket; /* the kernel's `struct sock` of its client; 0: not known yet */
	u64 socket_id; /* the connection that it belongs to */
	u64 socket_start; /* of the statement in which it was met; 0: not known, where the layout has no start */
	u64 socket_is_certain; /* the server accepted it from a client */
	struct parts parts;
};

#endif
