/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What both halves of the tap see. The Rust types are generated from these. */
#ifndef WAGGLE_TAP_SHARED_H
#define WAGGLE_TAP_SHARED_H

#define TARGET_PLACES 256
#define TARGET_TRIES 4
#define SPANS_MAX 6
#define USER_MAX 128
#define HOST_MAX 256
#define DATABASE_MAX 256
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
	LOST_KINDS,
};

/* A server that is watched. */
struct target {
	u32 tgid; /* 0: none any more */
	u32 turn; /* of the watching of anything: sessions that were told in another are told again */
	u32 program; /* `cfg.program` of the one that serves it */
	u32 unused;
	u64 lost[LOST_KINDS]; /* every kind of loss has a counter */
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
	u32 status_error;
	u32 start; /* offset in the session */

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

	/* For nested statements only: offsets in the session, in its instruction; 0: not known. */
	u32 id;
	u32 command;
	u32 rows_sent;
	u32 rows_examined;
	u32 instruction_text;

	u32 data_length; /* bytes of all spans in a record */
	u32 text_limit;
	u64 ring_bytes; /* of each ring */
	u32 program; /* its number: each serves servers of one layout */
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
	u64 bytes;
	s32 result; /* of the send */
	u32 text_length; /* bytes of text in this record */
	u32 text_unreadable;
	u32 program; /* `cfg.program` of the one that wrote it, of statements */
};

struct statement {
	struct head head;
	u8 data[]; /* the spans, then the text */
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
	u64 replied; /* it has not waited for a request since its last reply */
};

#endif
