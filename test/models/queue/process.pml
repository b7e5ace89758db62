/* What a process does while it waits and holds: lib/client/waiting/acquisition.ts. */

#define running(p) (client[p].state != DEAD && !client[p].stopped)
#define waits(p) (client[p].state == ASKING || client[p].state == STANDING)
#define holds(p) (client[p].state == HOLDING && client[p].deadline > 0)

inline check_exclusion() {
  number = 0;
  for (i : 0 .. N - 1) { if :: holds(i) -> number++ :: else fi }
  assert(number <= 1)
}

/* All processes are alike, so it is enough if the first fault strikes the first process, and each other one a process that
   has been struck or the next. */
#define may_fail(p) (faults > 0 && p <= struck)

/* @param is_known  the server knows at once that no process listens. Such a waiter is passed over, and costs a claim at most:
   when the hold in its way ends by itself, the waiter behind it looks a claim later. */
inline fault(p, is_known) {
  faults--;
  if :: is_known && hold[p] == 0 -> allowed = allowed + CLAIM :: else -> allowed = allowed + COST fi;
  if :: p == struck -> struck++ :: else fi;
  orderly[p] = 0
}

/* acquisition.ts, begin. */
inline begin(p) {
  client[p].state = ASKING;
  client[p].look = NEVER;
  client[p].asked = (client[p].claims == 0);
  client[p].sent = 0
}

/* acquisition.ts, after: `remaining` is the time that the store has named. */
inline look_after(p) {
  remaining = min(remaining, LEASE);
#ifdef WAITS_FOR_MESSAGES_ONLY
  remaining = NEVER;
#else
  if :: !client[p].asked -> remaining = min(remaining, client[p].claims) :: else fi;
#endif
  client[p].look = remaining
}

inline hold_from(p, age_of_grant) {
  client[p].state = HOLDING;
#ifdef DEADLINE_FROM_THE_ANSWER
  client[p].deadline = LEASE;
#else
  client[p].deadline = LEASE - (age_of_grant);
#endif
  check_exclusion()
}

/* acquisition.ts, leave, and the release of a hold. */
inline leave(p) {
  client[p].state = LEAVING;
  client[p].deadline = 0;
  client[p].look = NEVER;
  wire[p].answer = ANSWER_NONE;
  wire[p].wait = 0;
  client[p].sent = 0
}

/* Nothing of this owner is under way. Only then the process may be another owner: an owner is never used twice. */
#ifdef OWNER_USED_TWICE
#define used_up(p) (!wire[p].release)
#else
#define used_up(p) (!wire[p].release && !wire[p].unheard && !wire[p].stray && !wire[p].late_release && \
  !wire[p].late_renewal && hold[p] == 0 && !entry[p])
#endif

inline settle(p) {
  if
  :: client[p].state == LEAVING && used_up(p) ->
    client[p].state = IDLE;
    client[p].claims = NEVER;
    client[p].asked = 0;
    forget_message(p);
    age[p] = 0;
    orderly[p] = 0;
    if :: arrival[p] > 0 -> forget_arrival(p) :: else fi
  :: else
  fi
}

/* The request has no answer: acquisition.ts, failed. */
inline fail(p) {
  client[p].state = STANDING;
  client[p].sent = 0;
  client[p].look = min(client[p].look, 1)
}

/* acquisition.ts, start: the answer `yes`, or `remaining` until it asks again. */
inline answered(p, listed) {
  if
  :: yes && client[p].sent < LEASE -> hold_from(p, client[p].sent)
  /* An answer that comes after the end of its lease is none. */
  :: yes && client[p].sent >= LEASE -> fail(p)
  :: else ->
    client[p].state = STANDING;
    if
    :: listed ->
      if :: client[p].claims == NEVER -> client[p].claims = CLAIM :: else fi
    :: else -> remaining = 1
    fi;
    /* A message that has overtaken the answer may name an earlier time. */
    sooner = client[p].look;
    look_after(p);
    client[p].look = min(client[p].look, sooner)
  fi;
  client[p].sent = 0
}

/* acquisition.ts, onMessage. */
inline read_message(p) {
  if
  :: waits(p) ->
    if
    :: wire[p].message == MESSAGE_LEASE && wire[p].value < CLAIM -> hold_from(p, wire[p].value)
#ifdef CLAIM_TAKEN_FOR_A_LEASE
    :: wire[p].message == MESSAGE_CLAIM -> hold_from(p, wire[p].value)
#else
    :: wire[p].message == MESSAGE_CLAIM -> client[p].look = 0
#endif
    :: wire[p].message == MESSAGE_LEASE && wire[p].value >= CLAIM -> client[p].look = 0
    /* It asks already. */
    :: wire[p].message == MESSAGE_NEXT && client[p].state == STANDING && client[p].look == 0
    :: else ->
      remaining = wire[p].value;
#ifdef NOT_ASKED_AGAIN_AFTER_NEXT
      client[p].look = NEVER
#else
      look_after(p)
#endif
    fi
  :: else
  fi;
  forget_message(p)
}

/* releaser.ts: a release without an answer is sent again, and so is one that an acquisition may still follow. */
inline repeat_release(p) {
  if
  :: client[p].state == LEAVING && (wire[p].unheard || wire[p].stray) -> wire[p].release = 1; wire[p].unheard = 0
  :: else
  fi
}

/* Without a process the server may still take it for subscribed: the machine is gone, or it is a node of a cluster. */
inline die(p, seems_subscribed) {
  client[p].state = DEAD;
  client[p].look = NEVER;
  client[p].claims = NEVER;
  client[p].asked = 0;
  client[p].sent = 0;
  client[p].deadline = 0;
  wire[p].answer = ANSWER_NONE;
  wire[p].wait = 0;
  forget_message(p);
  subscribed[p] = seems_subscribed
}
