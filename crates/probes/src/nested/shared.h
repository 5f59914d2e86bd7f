/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What both halves of the nested probe see beside what the tap has. */
#ifndef WAGGLE_NESTED_SHARED_H
#define WAGGLE_NESTED_SHARED_H

/*
 * What a record has about a nested statement beyond the session's data at its end. It is at the
 * end of the data of a `struct statement`.
 */
struct nested {
	u64 begin_ns;  /* 0: not known */
	u64 rows_sent; /* of the session when the statement began */
	u64 rows_examined;
	u32 is_applied;	     /* by a replica */
	s32 database_length; /* -1: none */
	u8 database[DATABASE_MAX];
};

/* What the kernel keeps of a statement that runs. */
struct frame_key {
	u64 stack; /* address of the return address: no other running call has the same */
	u64 tgid;
};

/* A session of the server's own threads. */
struct session_key {
	u64 thd;
	u64 tgid;
};

struct frame {
	u64 thd;
	u64 begin_ns;
	u64 rows_sent;
	u64 rows_examined;
	u64 text; /* as the routine or the binary log has it; 0: the session has it */
	u64 text_length;
	u64 session_text; /* the session's when the statement began */
	u64 depth;	  /* 1: inside no other */
};

#endif
