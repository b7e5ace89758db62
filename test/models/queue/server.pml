/* What the scripts do. Each runs alone, in one step. */

inline count_holders() {
  number = 0;
  for (i : 0 .. N - 1) { if :: hold[i] > 0 -> number++ :: else fi }
}

/* queue.include.lua: the waiter that has stood for longest. */
inline head_of_queue() {
  h = N;
  for (i : 0 .. N - 1) {
    if
#ifdef SERVED_FROM_THE_END
    :: entry[i] && (h == N || arrival[i] > arrival[h]) -> h = i
#else
    :: entry[i] && (h == N || arrival[i] < arrival[h]) -> h = i
#endif
    :: else
    fi
  }
}

/* Forgets an order number, so that the numbers stay small. */
inline forget_arrival(p) {
  for (i : 0 .. N - 1) { if :: arrival[i] > arrival[p] -> arrival[i] = arrival[i] - 1 :: else fi }
  arrival[p] = 0
}

/* queue.include.lua, take_entry: the entry that exists, the arrival that the owner was told, or one at the end. */
inline take_entry(p) {
  if
  :: entry[p] || (client[p].claims != NEVER && arrival[p] > 0)
  :: else ->
    if :: arrival[p] > 0 -> forget_arrival(p) :: else fi
    latest = 0;
    for (i : 0 .. N - 1) { latest = max(latest, arrival[i]) }
    arrival[p] = latest + 1;
    age[p] = 0
  fi
  entry[p] = 1
}

/* A message replaces one that has not been read: that one counts as lost. */
inline send(p, type, time) {
  if
  :: client[p].state == DEAD
  :: else ->
    wire[p].message = type;
    wire[p].value = time;
    wire[p].late = 0
  fi
}

inline forget_message(p) {
  wire[p].message = MESSAGE_NONE;
  wire[p].value = 0;
  wire[p].late = 0
}

/* A process that waits in order is never passed. */
inline check_order(p) {
  passed = 0;
  for (i : 0 .. N - 1) {
    if :: i != p && orderly[i] && (arrival[p] == 0 || arrival[p] > arrival[i]) -> passed++ :: else fi
  }
  assert(passed == 0);
  orderly[p] = 0
}

/* holders.include.lua, let_in. One holder at a time in the store. */
inline let_in(p, span) {
  check_order(p);
  hold[p] = max(hold[p], span);
  count_holders();
  assert(number <= 1)
}

/* holders.include.lua, blocked_until. */
inline blocked_for() {
  remaining = 0;
  for (i : 0 .. N - 1) { remaining = max(remaining, hold[i]) }
}

/* queue.include.lua, is_subscribed. */
#ifdef DEAD_WAITERS_ARE_LET_IN
#define is_subscribed(p) (1)
#else
#define is_subscribed(p) (subscribed[p])
#endif

/* queue.include.lua, tell_further: for so few processes it tells all behind the head. */
inline tell_further() {
  for (i : 0 .. N - 1) {
    if
    :: entry[i] && i != h && is_subscribed(i) -> send(i, MESSAGE_NEXT, remaining)
    :: else
    fi
  }
}

/* queue.include.lua, advance. */
inline advance() {
  do
  :: 1 ->
    head_of_queue();
    if :: h == N -> break :: else fi
    blocked_for();
    if
    :: remaining == 0 ->
      entry[h] = 0;
      if
      :: is_subscribed(h) && age[h] < CLAIM ->
        let_in(h, LEASE);
        send(h, MESSAGE_LEASE, 0)
      :: is_subscribed(h) && age[h] >= CLAIM ->
        let_in(h, CLAIM);
        claimed[h] = 1;
        send(h, MESSAGE_CLAIM, 0)
      :: else
      fi
    :: else ->
      if
      :: is_subscribed(h) ->
        send(h, MESSAGE_NEXT, remaining);
        if :: remaining <= CLAIM -> tell_further() :: else fi
        break
      :: else -> entry[h] = 0
      fi
    fi
  od;
  skip
}

/* queue-acquire.lua. Leaves the answer in `yes`, and in `remaining` when to ask again. */
inline queue_acquire(p, listed) {
  yes = 0;
  if
  :: hold[p] > 0 -> yes = 1
  :: else ->
    head_of_queue();
    blocked_for();
    if
    :: h != N && h != p && remaining == 0 ->
      advance();
      if :: hold[p] > 0 -> yes = 1 :: else fi
    :: else
    fi
  fi;
  if
  :: yes ->
    entry[p] = 0;
    hold[p] = max(hold[p], LEASE);
    claimed[p] = 0
  :: else ->
    head_of_queue();
    blocked_for();
    if
    :: (h == N || h == p) && remaining == 0 ->
      yes = 1;
      entry[p] = 0;
      let_in(p, LEASE);
      if :: h == p -> advance() :: else fi
    :: else ->
      if
      :: listed -> take_entry(p); orderly[p] = !wire[p].stray && subscribed[p]
      :: else
      fi
      rank = 0;
      for (i : 0 .. N - 1) {
        if :: entry[p] && entry[i] && arrival[i] < arrival[p] -> rank++ :: else fi
      }
      blocked_for();
      /* look_after. A claim further back is not counted twice. */
      remaining = max(remaining, 1);
      if
      :: rank > 0 && remaining > CLAIM -> remaining = min(remaining + CLAIM, LEASE)
      :: else
      fi
    fi
  fi
}

/* queue-release.lua. */
inline queue_release(p) {
#ifdef RELEASE_BY_ANY_OWNER
  for (i : 0 .. N - 1) { hold[i] = 0 }
#endif
  hold[p] = 0;
  claimed[p] = 0;
  entry[p] = 0;
  orderly[p] = 0;
#ifndef RELEASE_WITHOUT_HAND_OVER
  advance();
#endif
}

/* renew.lua. */
inline renew_hold(p) {
#ifdef RENEWAL_REVIVES
  hold[p] = LEASE;
#else
  if :: hold[p] > 0 -> hold[p] = LEASE; claimed[p] = 0 :: else fi;
#endif
  count_holders();
  assert(number <= 1)
}
