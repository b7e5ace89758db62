/*
 * Fencing tokens of a quorum: three nodes with clocks that are apart, and two processes.
 *
 * A step is one script on one node with its answer, or one move of a process. Ticks pass at any time; an attempt is over when the
 * next one comes. A request that is not carried out, an answer that is lost, a release that reaches some nodes only and a
 * process that dies may all happen at any time, too. Attempts, restarts and lost answers are counted.
 *
 * Checked: the tokens grow in the order of the grants; one process at a time holds the lock.
 *
 * docs/design/models.md says which part is which code, and what is left out.
 */
#include "state.pml"
#include "nodes.pml"
#include "process.pml"

#define is_to(p, n) (client[p].pending & bit_of(n))
/* Each request has a short time to be answered in, far less than a lease. */
#ifdef LATE_ANSWERS_COUNT
#define in_time(p) (1)
#else
#define in_time(p) (client[p].left == LEASE)
#endif
#define is_asking(p) (client[p].state == ASKING && in_time(p))
#define may_end(p) (client[p].state != IDLE)

active [2] proctype Process() {
  byte p = _pid;
  do
  /* The processes are alike: the first one begins. */
  :: d_step {
      begun && client[p].state == IDLE && attempts > 0 && (p == 0 || attempts < ATTEMPTS) ->
      attempts--;
      start(p)
    }

  :: d_step { is_asking(p) && is_to(p, 0) -> ask(p, 0, 1) }
  :: d_step { is_asking(p) && is_to(p, 1) -> ask(p, 1, 1) }
  :: d_step { is_asking(p) && is_to(p, 2) -> ask(p, 2, 1) }
  :: d_step { is_asking(p) && is_to(p, 0) && losses > 0 -> losses--; ask(p, 0, 0) }
  :: d_step { is_asking(p) && is_to(p, 1) && losses > 0 -> losses--; ask(p, 1, 0) }
  :: d_step { is_asking(p) && is_to(p, 2) && losses > 0 -> losses--; ask(p, 2, 0) }

  :: d_step { client[p].state == TELLING && in_time(p) && is_to(p, 0) -> tell(p, 0) }
  :: d_step { client[p].state == TELLING && in_time(p) && is_to(p, 1) -> tell(p, 1) }
  :: d_step { client[p].state == TELLING && in_time(p) && is_to(p, 2) -> tell(p, 2) }

  :: d_step { may_end(p) -> give_up(p, 0) }
  :: d_step { may_end(p) -> give_up(p, 1) }
  :: d_step { may_end(p) -> give_up(p, 2) }
  :: d_step { may_end(p) -> give_up(p, 3) }
  :: d_step { may_end(p) -> give_up(p, 4) }
  :: d_step { may_end(p) -> give_up(p, 5) }
  :: d_step { may_end(p) -> give_up(p, 6) }
  :: d_step { may_end(p) -> give_up(p, 7) }

  :: d_step { is_valid(p) && client[p].left < LEASE -> renew(p, NODES) }
  :: d_step { is_valid(p) && client[p].left < LEASE -> renew(p, 0) }
  :: d_step { is_valid(p) && client[p].left < LEASE -> renew(p, 1) }
  :: d_step { is_valid(p) && client[p].left < LEASE -> renew(p, 2) }
  /* client/holding/tenure.ts: the hand-off inside of a process counts the token on, without a command. */
  :: d_step {
      is_valid(p) && !client[p].handed_off ->
      client[p].handed_off = 1;
      client[p].token++;
      assert(client[p].token > last_token);
      last_token = client[p].token
    }
  od
}

active proctype World() {
  do
  /* The nodes are alike, so their clocks may be in order. */
  :: d_step { !begun && node[2].ahead < APART -> node[2].ahead++ }
  :: d_step { !begun && node[1].ahead < node[2].ahead -> node[1].ahead++ }
  :: d_step { !begun -> begun = 1 }
  :: d_step { begun -> tick(); skip }
  :: d_step { begun && restarts > 0 -> restarts--; restart(0) }
  :: d_step { begun && restarts > 0 -> restarts--; restart(1) }
  :: d_step { begun && restarts > 0 -> restarts--; restart(2) }
  od
}
