-- A load of sysbench 1.0 that can stand still, be counted and be given a rate while it runs.
--
-- A stock script does the work, as it is. Replaced is only the loop around it, `thread_run` of
-- sysbench.lua: each session counts in memory that it shares with the lab (the board: board.rs has
-- its layout), and begins a transaction only when the board lets it.
--
-- Every number of the board is a double, since that is what Lua counts in: whole numbers are exact up
-- to 2^53, and an aligned one is read and written whole.

-- Loops are compiled when they run for the second time, not for the 56th: a load is as quick as it will
-- be after ten transactions of each session, and not after a hundred.
jit.opt.start("hotloop=2", "hotexit=2")

local ffi = require("ffi")
local bit = require("bit")

ffi.cdef[[
typedef struct {
   double sessions, buckets, epoch_s;
   volatile double pace, per_second, last_ns, failed, unused;
   char mutex[64];
} lab_head;

typedef struct {
   volatile double is_still, transactions, retries, sum_ns, max_ns, is_busy, unused[2];
} lab_session;

typedef union { volatile double number; volatile uint32_t half[2]; } lab_bits;
typedef struct { long tv_sec, tv_nsec; } lab_time;
typedef struct { unsigned long soft, hard; } lab_limit;

int open(const char *path, int flags, ...);
void *mmap(void *address, size_t length, int protection, int flags, int file, long offset);
int flock(int file, int operation);
int clock_gettime(int clock, lab_time *now);
int clock_nanosleep(int clock, int flags, const lab_time *time, lab_time *left);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int getrlimit(int resource, lab_limit *limit);
int setrlimit(int resource, const lab_limit *limit);
int pthread_mutexattr_init(void *attributes);
int pthread_mutexattr_setpshared(void *attributes, int shared);
int pthread_mutex_init(void *mutex, const void *attributes);
int pthread_mutex_lock(void *mutex);
int pthread_mutex_unlock(void *mutex);
]]

-- Numbers of Linux, the same on x86-64 and aarch64.
local O_RDWR, PROT_READ_WRITE, MAP_SHARED = 2, 3, 1
local LOCK_SH, LOCK_UN = 1, 8
local CLOCK_MONOTONIC, TIMER_ABSTIME = 1, 1
local RLIMIT_NOFILE, PTHREAD_PROCESS_SHARED, PR_SET_TIMERSLACK = 7, 1, 29

-- As in board.rs and histogram.rs.
local HEAD_BYTES, SESSION_BYTES, PAGE_BYTES = 4096, 64, 4096
local BUCKETS, LOWEST = 27 * 256, (1023 + 10) * 256
local PAUSED, CLOSED, OPEN = 0, 1, 2

-- The script: a file, or the name of one that comes with sysbench.
local script = assert(os.getenv("WAGGLE_LAB_SCRIPT"), "WAGGLE_LAB_SCRIPT is not set")
local path = script:find("/", 1, true) and script or package.searchpath(script, package.path)
local file = path and io.open(path)
if not file then
   error("no such script: " .. script, 0)
end
file:close()
dofile(path)

-- Of this session; every session has a Lua state of its own.
local gate, head, session, counts, nap_ns
local now, bits = ffi.new("lab_time"), ffi.new("lab_bits")

-- The board is our standard input. Opening it anew gives this session a lock of its own.
local function open_board()
   gate = ffi.C.open("/proc/self/fd/0", O_RDWR)
   assert(gate >= 0, "the board cannot be opened")
   local sessions = sysbench.opt.threads
   local records = math.ceil(sessions * SESSION_BYTES / PAGE_BYTES) * PAGE_BYTES
   local bytes = HEAD_BYTES + records + sessions * BUCKETS * 8
   local memory = ffi.C.mmap(nil, bytes, PROT_READ_WRITE, MAP_SHARED, gate, 0)
   assert(ffi.cast("intptr_t", memory) ~= -1, "the board cannot be mapped")
   local base = ffi.cast("char *", memory)
   head = ffi.cast("lab_head *", base)
   assert(head.sessions == sessions and head.buckets == BUCKETS, "the board has another layout")
   return base, HEAD_BYTES + records
end

local function now_ns()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
   return (tonumber(now.tv_sec) - head.epoch_s) * 1e9 + tonumber(now.tv_nsec)
end

local function sleep_until(ns)
   local seconds = math.floor(ns / 1e9)
   now.tv_sec, now.tv_nsec = head.epoch_s + seconds, ns - seconds * 1e9
   ffi.C.clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, now, nil)
end

-- Stands still as long as the lab holds the lock: that is a sleep in the kernel, and ends with the
-- lab, however that ends. `is_still` changes back only under our own lock, so that the lab can be
-- sure of it while it holds its lock. False where the lab is gone: a pause without its lock.
local function stand_still()
   session.is_still = 1
   while ffi.C.flock(gate, LOCK_SH) ~= 0 do end -- a signal came
   local is_released = head.pace ~= PAUSED
   if is_released then
      session.is_still = 0
   end
   ffi.C.flock(gate, LOCK_UN)
   return is_released
end

-- Takes the next arrival of all sessions together (exponential gaps, so a Poisson process) and waits
-- for it; nil where it came to a pause before. All arrivals are taken in their order, and each by the
-- next session that is free. What was taken and not begun is dropped: the process has no memory.
local function arrival()
   ffi.C.pthread_mutex_lock(head.mutex)
   local gap_ns = -math.log(1 - sysbench.rand.uniform_double()) * 1e9 / head.per_second
   local due_ns = head.last_ns + gap_ns
   head.last_ns = due_ns
   ffi.C.pthread_mutex_unlock(head.mutex)
   while head.pace == OPEN do
      local left_ns = due_ns - now_ns()
      if left_ns <= 0 then
         return due_ns
      end
      sleep_until(due_ns - left_ns + math.min(left_ns, nap_ns))
   end
end

-- Waits until a transaction may begin; gives the instant at which it was due, nil at the end.
local function due()
   while true do
      local pace = head.pace
      if pace == CLOSED then
         return now_ns()
      elseif pace == OPEN then
         local due_ns = arrival()
         if due_ns then
            return due_ns
         end
      elseif pace ~= PAUSED or not stand_still() then
         return nil
      end
   end
end

-- One transaction. As in sysbench's own loop, one that met an error which it shall ignore (by default a
-- deadlock, a lock that was waited for too long, a changed row) begins anew.
local function transact(thread)
   while true do
      local is_done, said = pcall(event, thread)
      if is_done and not said then
         return
      end
      if is_done or type(said) ~= "table" or said.errcode ~= sysbench.error.RESTART_EVENT then
         said = is_done and "the script ended the load" or said
         -- Said before it is known, so that who knows of it finds it in the log.
         print("FATAL: " .. tostring(said))
         head.failed = 1
         error(said, 0)
      end
      session.retries = session.retries + 1
      if sysbench.hooks.before_restart_event then
         sysbench.hooks.before_restart_event(said)
      end
   end
end

-- The bucket of a time: the exponent and the first 8 bits of the mantissa of its double.
local function record(took_ns)
   session.transactions = session.transactions + 1
   session.sum_ns = session.sum_ns + took_ns
   if took_ns > session.max_ns then
      session.max_ns = took_ns
   end
   bits.number = took_ns
   local bucket = bit.rshift(bits.half[1], 12) - LOWEST
   bucket = math.max(0, math.min(bucket, BUCKETS - 1))
   counts[bucket] = counts[bucket] + 1
end

local stock_init, stock_thread_init = init, thread_init

-- Once, before there are sessions.
function init(...)
   if stock_init then
      stock_init(...)
   end
   -- Each session has a socket and the board open.
   local limit = ffi.new("lab_limit")
   ffi.C.getrlimit(RLIMIT_NOFILE, limit)
   limit.soft = limit.hard
   ffi.C.setrlimit(RLIMIT_NOFILE, limit)
   open_board()
   local attributes = ffi.new("char[64]")
   ffi.C.pthread_mutexattr_init(attributes)
   ffi.C.pthread_mutexattr_setpshared(attributes, PTHREAD_PROCESS_SHARED)
   ffi.C.pthread_mutex_init(head.mutex, attributes)
end

function thread_init(...)
   if stock_thread_init then
      stock_thread_init(...)
   end
   local base, histograms = open_board()
   session = ffi.cast("lab_session *", base + HEAD_BYTES) + sysbench.tid
   counts = ffi.cast("double *", base + histograms) + sysbench.tid * BUCKETS
   -- So long it takes at most until one that sleeps sees a pause; many sessions look less often.
   nap_ns = math.min(math.max(20, sysbench.opt.threads), 250) * 1e6
   -- A sleep may end 50 us late unless one asks for better (prctl(2)).
   ffi.C.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
end

function thread_run(thread)
   while ffi.C.sb_more_events(thread) do
      local due_ns = due()
      if not due_ns then
         return
      end
      session.is_busy = 1
      ffi.C.sb_event_start(thread)
      transact(thread)
      ffi.C.sb_event_stop(thread)
      record(now_ns() - due_ns)
      session.is_busy = 0
   end
end
