/*
 * The line across the fleet: a fair lock with one holder, and waiters in its queue on one server.
 *
 * A step is one script on the server with its answer, one message that arrives, or one move of a process. What is due happens
 * before the next tick of the clock: only a fault makes it late, and the faults are counted. All times are what is left of
 * them, in ticks, so that there are finitely many states.
 *
 * Checked: one holder at a time, in the store and among the processes; no waiter passes an earlier one that nothing has
 * disturbed; the lock is never without a holder while a process waits, except for as long as the faults so far explain.
 *
 * docs/design/models.md says which part is which script, and what is left out.
 */
#include "state.pml"
#include "server.pml"
#include "process.pml"

#define asks(p) (running(p) && ((client[p].state == IDLE && subscribed[p]) || \
  (client[p].state == STANDING && client[p].look == 0)))
#define gives_up(p) (running(p) && (waits(p) || client[p].state == HOLDING))

active [N] proctype Process() {
  byte p = _pid;
  do
  :: d_step { asks(p) -> begin(p); queue_acquire(p, subscribed[p]); answered(p, subscribed[p]) }
  :: d_step { running(p) && wire[p].message != MESSAGE_NONE -> read_message(p) }
  /* The caller gives up, or is done, or its lease is over. */
#ifdef GIVING_UP_KEEPS_THE_GRANT
  :: d_step { gives_up(p) ->
      if :: waits(p) -> leave(p); entry[p] = 0; orderly[p] = 0 :: else -> leave(p); queue_release(p) fi; settle(p) }
#else
  :: d_step { gives_up(p) -> leave(p); queue_release(p); settle(p) }
#endif
  :: d_step { running(p) && wire[p].release -> wire[p].release = 0; queue_release(p); settle(p) }
  /* The watchdog. A fixed lease is not renewed. */
  :: d_step {
      running(p) && holds(p) && client[p].deadline < LEASE ->
      renew_hold(p);
      if :: hold[p] > 0 -> client[p].deadline = LEASE :: else -> leave(p); queue_release(p); settle(p) fi;
      check_exclusion()
    }
  /* What a fault has made late. */
  :: d_step {
      running(p) && client[p].state == ASKING && wire[p].answer != ANSWER_NONE ->
      yes = (wire[p].answer == ANSWER_GRANTED);
      remaining = wire[p].wait;
      answered(p, wire[p].answer == ANSWER_BUSY);
      wire[p].answer = ANSWER_NONE;
      wire[p].wait = 0
    }
  :: d_step {
      wire[p].stray ->
      queue_acquire(p, 1);
      orderly[p] = 0;
      wire[p].stray = 0;
      /* The release is repeated once more. */
      if :: client[p].state == LEAVING -> wire[p].release = 1 :: else fi
    }
  :: d_step { wire[p].late_release -> wire[p].late_release = 0; queue_release(p); settle(p) }
  :: d_step { wire[p].late_renewal -> wire[p].late_renewal = 0; renew_hold(p); settle(p) }
  :: d_step { client[p].stopped -> client[p].stopped = 0 }
  /* The subscription is back: messages may have been missed. */
  :: d_step { running(p) && !subscribed[p] -> subscribed[p] = 1; if :: waits(p) -> client[p].look = 0 :: else fi }

  /* ---------------------------------------------------------------- faults */
  /* The request is lost. */
  :: d_step { may_fail(p) && asks(p) -> begin(p); fault(p, 0); fail(p) }
  /* It arrives when the process does not listen to its answer any more. */
  :: d_step { may_fail(p) && asks(p) && !wire[p].stray -> begin(p); fault(p, 0); fail(p); wire[p].stray = 1 }
  /* The answer is lost. */
  :: d_step { may_fail(p) && asks(p) -> begin(p); queue_acquire(p, subscribed[p]); fault(p, 0); fail(p) }
  /* The answer is late. */
  :: d_step {
      may_fail(p) && asks(p) ->
      begin(p);
      queue_acquire(p, subscribed[p]);
      fault(p, 0);
      wire[p].answer = (yes -> ANSWER_GRANTED : (subscribed[p] -> ANSWER_BUSY : ANSWER_UNLISTED));
      wire[p].wait = (yes -> 0 : remaining)
    }
  /* A message is lost, or late. */
  :: d_step {
      may_fail(p) && wire[p].message != MESSAGE_NONE ->
      fault(p, 0);
      forget_message(p)
    }
  :: d_step { may_fail(p) && wire[p].message != MESSAGE_NONE && !wire[p].late -> fault(p, 0); wire[p].late = 1 }
  /* A release is lost, or late: it is repeated in both cases. */
  :: d_step { may_fail(p) && gives_up(p) -> fault(p, 0); leave(p); wire[p].unheard = 1 }
  :: d_step {
      may_fail(p) && gives_up(p) && !wire[p].late_release ->
      fault(p, 0);
      leave(p);
      wire[p].unheard = 1;
      wire[p].late_release = 1
    }
  /* A renewal is late. */
  :: d_step {
      may_fail(p) && running(p) && holds(p) && client[p].deadline < LEASE && !wire[p].late_renewal ->
      fault(p, 0);
      wire[p].late_renewal = 1
    }
  /* The process stops, dies, or loses its subscription. */
  :: d_step { may_fail(p) && gives_up(p) -> fault(p, 0); client[p].stopped = 1 }
  :: d_step { may_fail(p) && gives_up(p) -> fault(p, 1); die(p, 0) }
  :: d_step { may_fail(p) && gives_up(p) -> fault(p, 0); die(p, 1) }
  :: d_step {
      may_fail(p) && running(p) && subscribed[p] && waits(p) ->
      fault(p, 1);
      subscribed[p] = 0;
      forget_message(p)
    }
  od
}

#define urgent(p) (running(p) && (wire[p].release || \
  (client[p].state == STANDING && client[p].look == 0) || \
  (client[p].state == ASKING && wire[p].answer != ANSWER_NONE) || \
  (client[p].state == HOLDING && client[p].deadline == 0) || \
  (wire[p].message != MESSAGE_NONE && !wire[p].late)))

#define less(time) if :: time > 0 -> time-- :: else fi

active proctype Clock() {
  do
  :: d_step {
#if N == 3
      !urgent(0) && !urgent(1) && !urgent(2) ->
#else
      !urgent(0) && !urgent(1) && !urgent(2) && !urgent(3) ->
#endif
      /* No lost wake-up: without a fault the lock is not free while a process waits for it, and after a fault not for long. */
      yes = 0;
      number = 0;
      for (i : 0 .. N - 1) {
        if :: running(i) && waits(i) && subscribed[i] -> yes = 1 :: else fi;
        if :: running(i) && holds(i) -> number = 1 :: else fi
      }
      idle = (yes && number == 0 -> idle + 1 : 0);
      assert(idle <= allowed);

      for (i : 0 .. N - 1) {
#ifdef CLAIM_WITHOUT_END
        if :: !claimed[i] -> less(hold[i]) :: else fi;
#else
        less(hold[i]);
#endif
        if :: hold[i] == 0 -> claimed[i] = 0 :: else fi;
        less(client[i].deadline);
        if :: client[i].look != NEVER -> less(client[i].look) :: else fi;
        if :: client[i].claims != NEVER -> less(client[i].claims) :: else fi;
        if :: arrival[i] > 0 && age[i] < CLAIM -> age[i]++ :: else fi;
        if :: client[i].state == ASKING && client[i].sent < LEASE -> client[i].sent = client[i].sent + 1 :: else fi;
        if :: wire[i].message == MESSAGE_LEASE && wire[i].value < CLAIM -> wire[i].value = wire[i].value + 1 :: else fi;
        repeat_release(i);
        /* The time of a command is over. */
        if :: running(i) && client[i].state == ASKING -> fail(i) :: else fi;
        if :: client[i].state != ASKING -> wire[i].answer = ANSWER_NONE; wire[i].wait = 0 :: else fi
      }
      k = 0;
      do
      :: k < N -> settle(k); k++
      :: else -> break
      od;
      skip
    }
  od
}
