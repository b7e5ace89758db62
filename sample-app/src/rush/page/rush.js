// The page asks for the state a few times a second while it is seen: enough for one person and one button.
const INTERVAL = 250;

const byId = (id) => document.getElementById(id);
const show = (id, value) => {
  byId(id).textContent = String(value);
};
const numbered = (count) => Array.from({ length: count }, (_, n) => n + 1);

/** Free, sold here, sold by another instance, or sold more than once. */
function classOf(times, isSold) {
  if (times > 1) return 'twice';
  if (times === 1) return 'sold';
  return isSold ? 'other' : '';
}

function drawSeats(seats, sold) {
  const list = byId('seats');
  if (list.children.length !== seats.length) {
    list.replaceChildren(...numbered(seats.length).map(() => document.createElement('li')));
  }
  seats.forEach((times, index) => {
    const seat = list.children[index];
    seat.className = classOf(times, index < sold);
    seat.textContent = times > 1 ? String(times) : '';
    seat.title = times > 1 ? `seat ${index + 1}, sold ${times} times` : `seat ${index + 1}`;
  });
}

function verdictOf({ rush, waitingHere }, twice) {
  if (rush === null) return ['', 'Press the button, and watch the line.'];
  if (rush.running && twice === 0)
    return ['', rush.locked ? `${waitingHere} buyers wait in line …` : 'All of them pay at once …'];
  if (twice > 0)
    return [
      'wrong',
      twice === 1 ? '1 seat was sold more than once.' : `${twice} seats were sold more than once.`,
    ];
  if (rush.tally.failed > 0)
    return ['wrong', `The shop failed for ${rush.tally.failed} buyers. No seat was sold twice.`];
  return ['right', 'Each seat was sold once.'];
}

function draw(state) {
  const { rush, sold, waitingHere, holder, fencingToken } = state;
  const seats = rush?.seats ?? numbered(100).map(() => 0);
  drawSeats(seats, sold);
  const twice = seats.filter((times) => times > 1).length;
  const [mark, verdict] = verdictOf(state, twice);
  byId('verdict').className = mark;
  show('verdict', verdict);
  show('sold', sold);
  show('twice', twice);
  show('away', rush === null ? '–' : rush.tally.soldOut + rush.tally.busy + rush.tally.failed);
  show('line', waitingHere);
  show('time', rush === null ? '–' : `${(rush.time / 1_000).toFixed(1)} s`);
  show('holder', holder ?? 'no instance');
  show('token', fencingToken ?? '–');
  byId('start').disabled = rush?.running === true;
}

async function look() {
  try {
    const answer = await fetch('rush/state');
    if (answer.ok) draw(await answer.json());
    else fail(`The shop answers ${answer.status}`);
  } catch {
    fail('The shop does not answer.');
  }
}

function fail(verdict) {
  byId('verdict').className = 'wrong';
  show('verdict', verdict);
}

byId('rush').addEventListener('submit', async (event) => {
  event.preventDefault();
  byId('start').disabled = true;
  const locked = new FormData(event.target).get('locked');
  const body = new URLSearchParams({ buyers: '200', locked });
  const answer = await fetch('rush', { method: 'POST', body }).catch(() => undefined);
  await look();
  if (answer?.ok !== true) fail('The shop could not start the sale.');
});

setInterval(() => {
  if (!document.hidden) void look();
}, INTERVAL);
await look();
