"use strict";

// The replay viewer. All games are in the page; every text goes in as text, never as HTML.
(() => {
  const games = JSON.parse(document.getElementById("games").textContent);
  const SECONDS_PER_STEP = 1.2;
  const RANKS = { A: "Ace", T: "10", J: "Jack", Q: "Queen", K: "King", "*": "Joker" };
  const SUITS = { c: ["\u2663", "clubs"], d: ["\u2666", "diamonds"], h: ["\u2665", "hearts"], s: ["\u2660", "spades"] };
  const TEXT_STYLE = "\ufe0e"; // no emoji
  const KEY_SPIES = 12;
  const ESTIMATES = {
    wins: { name: "win, %", show: percent, spread: percent },
    key_spies: { name: "Key Spies", show: (value) => value.toFixed(2), spread: (error) => error.toFixed(2) },
    payoffs: { name: "payoff", show: signed, spread: (error) => error.toFixed(2) },
  };
  const VERBS = {
    counter: ["counters", "with"],
    recruit: ["recruits", "with"],
    assassinate: ["assassinates", "giving up"],
  };

  const at = { game: 0, step: 0, sortedBy: null, timer: null };
  const part = Object.fromEntries(
    ["game", "reason", "stage", "first", "back", "auto", "next", "last", "step", "where", "caption", "table", "choices", "hidden", "hidden-cards"]
      .map((id) => [id, document.getElementById(id)]),
  );

  // --- Words and elements ---

  function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function percent(value) {
    return (100 * value).toFixed(1);
  }

  function signed(value) {
    return (value < 0 ? "\u2212" : "+") + Math.abs(value).toFixed(2);
  }

  function counted(number, thing = "card") {
    return `${number} ${thing}${number === 1 ? "" : "s"}`;
  }

  function cardsOf(text) {
    return text ? text.split(" ") : [];
  }

  function rankText(card) {
    return { T: "10", "*": "\u2605" }[card[0]] ?? card[0];
  }

  function pretty(card) {
    if (card[0] === "*") return "Joker";
    return rankText(card) + (card[1] ? SUITS[card[1]][0] + TEXT_STYLE : "");
  }

  function spoken(card) {
    const rank = RANKS[card[0]] ?? card[0];
    return card[1] ? `${rank} of ${SUITS[card[1]][1]}` : rank;
  }

  // --- Cards and piles ---

  function cardElement(card, { small = false, used = false } = {}) {
    const kind = `card suit-${card[1] ?? "x"}${small ? " small" : ""}${used ? " used" : ""}`;
    const label = spoken(card) + (used ? ", played" : "");
    const face = make("span", { class: kind, role: "img", "aria-label": label, "data-card": card });
    face.append(make("b", {}, rankText(card)));
    if (card[1]) face.append(make("i", {}, SUITS[card[1]][0] + TEXT_STYLE));
    return face;
  }

  function place(kind, label) {
    return make("span", { class: `card ${kind}`, role: "img", "aria-label": label });
  }

  function pile(number) {
    return number ? place("back", "cards face down") : place("empty", "no card");
  }

  function row(cards, { small = false, used = [] } = {}) {
    const left = [...used]; // both Jokers have one name
    const elements = cards.map((card) => {
      const found = left.indexOf(card);
      if (found >= 0) left.splice(found, 1);
      return cardElement(card, { small, used: found >= 0 });
    });
    if (!elements.length) elements.push(place(small ? "empty small" : "empty", "no card"));
    return make("span", { class: "cards" }, ...elements);
  }

  function zone(area, name, note, ...content) {
    const heading = make("p", { class: "zone-name" }, name, " ", make("span", { class: "note" }, note));
    return make("div", { class: "zone", role: "group", "aria-label": name, "data-zone": area }, heading, ...content);
  }

  // --- The table of Deck of Spies ---

  function countKeySpies(...piles) {
    return piles.flatMap(cardsOf).filter((card) => "JQK".includes(card[0])).length;
  }

  function gauge(held, lost, needed) {
    const label = `${held} held, ${lost} lost, ${needed} to win`;
    const pips = Array.from({ length: KEY_SPIES }, (_, number) => {
      const kind = number < held ? "held" : number >= KEY_SPIES - lost ? "lost" : "open";
      const mark = { held: "\u2713", lost: "\u00d7", open: "" }[kind];
      return make("span", { class: `pip ${kind}${number === needed ? " goal" : ""}` }, mark);
    });
    return zone("key_spies", "Key Spies", label, make("span", { class: "pips", "aria-hidden": "true" }, ...pips));
  }

  function drawSolitaire(game, position) {
    const { zones, decisions } = position;
    const used = decisions.length ? decisions[0].plays[decisions[0].made].split(" ").slice(1) : [];
    const lost = cardsOf(zones.spy_discard).length, drawn = cardsOf(zones.draw_deck).length;
    const discard = cardsOf(zones.draw_discard), aces = cardsOf(zones.removed);
    const held = countKeySpies(zones.hand, zones.draw_deck, zones.draw_discard);
    part.table.className = "table solitaire";
    part.table.replaceChildren(
      zone("spy", "Spy Deck", `+ ${cardsOf(zones.spy_deck).length} unseen`, row(cardsOf(zones.spy))),
      zone("spy_discard", "Spy Discard", counted(lost), pile(lost)),
      gauge(held, countKeySpies(zones.spy_discard), game.key_spies_to_win),
      zone("removed", "Aces removed", aces.length ? "" : "none", ...(aces.length ? [row(aces, { small: true })] : [])),
      zone("draw_deck", "Draw Deck", counted(drawn), pile(drawn)),
      zone("draw_discard", "Draw Discard", counted(discard.length), row(discard, { small: true })),
      zone("hand", "Hand", counted(cardsOf(zones.hand).length), row(cardsOf(zones.hand), { used })),
    );
    part["hidden-cards"].replaceChildren(
      zone("cards_of_draw_deck", "Draw Deck", "in an unknown order", row(cardsOf(zones.draw_deck), { small: true })),
      zone("cards_of_spy_deck", "Spy Deck", "not seen yet", row(cardsOf(zones.spy_deck), { small: true })),
      zone("cards_of_spy_discard", "Spy Discard", "gone", row(cardsOf(zones.spy_discard), { small: true })),
    );
  }

  function tellSolitaire(game, position) {
    const { zones, decisions, phase } = position;
    const who = game.players[0];
    if (!decisions.length) return `The end: ${game.ending}.`;
    const [kind, ...cards] = decisions[0].plays[decisions[0].made].split(" ");
    const named = cards.map(pretty).join(" ");
    const turn = `Turn ${position.turn}, ${phase}: ${who}`;
    if (kind === "pass") return `${turn} retires nothing.`;
    if (kind === "retire") return `${turn} retires ${named}.`;
    const [verb, how] = VERBS[kind];
    return `${turn} ${verb} ${pretty(zones.spy)} ${how} ${named}.`;
  }

  // --- The table of Skirmish ---

  function seatName(game, seat) {
    return `${game.players[seat]} (seat ${seat})`;
  }

  function drawSeat(game, position, seat) {
    const { zones, decisions } = position;
    const decision = decisions.find((one) => one.seat === seat);
    const hand = cardsOf(zones.hand[seat]), stakes = cardsOf(zones.stakes[seat]);
    const supply = cardsOf(zones.supply[seat]).length, capture = cardsOf(zones.capture[seat]);
    const used = decision ? hand.filter((card) => card[0] === decision.plays[decision.made]).slice(0, 1) : [];
    const piles = [
      zone("hand", "Hand", "", row(hand, { used })),
      zone("committed", "Committed", "", row(cardsOf(zones.committed[seat]))),
      zone("stakes", "Stakes", stakes.length || "", row(stakes, { small: true })),
      zone("supply", "Supply", counted(supply), pile(supply)),
      zone("capture", "Capture", counted(capture.length), row(capture, { small: true })),
    ];
    const note = decision ? "decides" : decisions.length ? "waits" : game.endings[seat];
    const heading = make("p", { class: "seat-name" }, seatName(game, seat), " ", make("span", { class: "note" }, note));
    const kind = `seat${decision ? " deciding" : ""}`;
    return make("div", { class: kind, role: "group", "aria-label": seatName(game, seat), "data-seat": seat }, heading, make("div", { class: "piles" }, ...piles));
  }

  function drawSkirmish(game, position) {
    const { zones } = position;
    const graveyard = cardsOf(zones.graveyard), burned = cardsOf(zones.burned).length;
    part.table.className = "table skirmish";
    part.table.replaceChildren(
      ...game.players.map((_, seat) => drawSeat(game, position, seat)),
      zone("graveyard", "Graveyard", counted(graveyard.length) + (burned ? `, ${burned} burned` : ""), row(graveyard, { small: true })),
    );
  }

  function tellSkirmish(game, position) {
    if (!position.decisions.length) return `The end: ${game.ending}.`;
    const plays = position.decisions.map(({ seat, plays: legal, made }) => `${seatName(game, seat)} commits ${pretty(legal[made])}`);
    return `Round ${position.turn}, ${position.phase}: ${plays.join("; ")}.`;
  }

  const KINDS = {
    deck_of_spies: { draw: drawSolitaire, tell: tellSolitaire, hides: true },
    skirmish: { draw: drawSkirmish, tell: tellSkirmish, hides: false },
  };

  // --- The plays of a decision ---

  function playElement(play) {
    const [first, ...cards] = play.split(" ");
    if (!cards.length && first !== "pass") return make("span", {}, pretty(first));
    const chips = cards.map((card) => cardElement(card, { small: true }));
    return make("span", { class: "play" }, first, " ", ...chips);
  }

  function columnsOf(game, decision) {
    const columns = Object.entries(decision.estimates).map(([key, { values, errors }]) => ({
      key, values, name: ESTIMATES[key].name, cell: (place) => estimateCell(ESTIMATES[key], values[place], errors[place]),
    }));
    decision.opinions.forEach((opinion, number) => {
      const { probabilities, values } = opinion, name = game.advisers[number];
      columns.push({ key: `opinion ${number}`, values: weights(opinion, decision), name: probabilities ? `${name}, %` : name, cell: (place) => opinionCell(opinion, place) });
      if (values) columns.push({ key: `values ${number}`, values, name: `${name}: own value`, cell: (place) => values[place]?.toFixed(3) ?? "" });
    });
    return columns;
  }

  function estimateCell({ show, spread }, value, error) {
    const note = Number(spread(error)) ? make("span", { class: "note" }, ` \u00b1${spread(error)}`) : "";
    return make("span", {}, show(value), note);
  }

  function weights(opinion, decision) {
    return opinion.probabilities ?? decision.plays.map((_, place) => Number(place === opinion.chosen));
  }

  function opinionCell({ probabilities, chosen }, place) {
    const mark = place === chosen ? make("span", { class: "chosen", role: "img", "aria-label": "chosen" }, "\u2713") : "";
    if (!probabilities) return make("span", {}, mark);
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${100 * probabilities[place]}%`;
    return make("span", { class: "probability" }, bar, mark, " ", percent(probabilities[place]));
  }

  function heading(column, sorted, owner) {
    const button = make("button", { type: "button", "data-focus": `${owner} ${column.key}` }, column.name, make("span", { "aria-hidden": "true" }, sorted ? " \u25be" : ""));
    button.addEventListener("click", () => {
      at.sortedBy = column.key;
      show();
    });
    const cell = make("th", { scope: "col" }, button);
    if (sorted) cell.setAttribute("aria-sort", "descending");
    return cell;
  }

  function playsTable(game, decision, caption) {
    const columns = columnsOf(game, decision);
    const by = columns.find((column) => column.key === at.sortedBy) ?? columns[0];
    const places = decision.plays.map((_, place) => place).sort((a, b) => by.values[b] - by.values[a] || a - b);
    const rows = places.map((place) => {
      const name = make("th", { scope: "row" }, playElement(decision.plays[place]));
      const line = make("tr", { "data-play": decision.plays[place] }, name, ...columns.map((column) => make("td", {}, column.cell(place))));
      if (place === decision.made) {
        line.className = "made";
        name.append(" ", make("span", { class: "badge" }, "played"));
      }
      return line;
    });
    const head = make("tr", {}, make("th", { scope: "col" }, "play"), ...columns.map((column) => heading(column, column === by, decision.seat)));
    const table = make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption, "data-focus": decision.seat }, table);
  }

  function drawChoices(game, position) {
    const several = game.players.length > 1, focused = document.activeElement.dataset.focus;
    part.choices.replaceChildren(...position.decisions.map((decision) => {
      const number = counted(decision.plays.length, "legal play");
      return playsTable(game, decision, several ? `${seatName(game, decision.seat)}: ${number}` : number);
    }));
    if (focused) (part.choices.querySelector(`[data-focus="${CSS.escape(focused)}"]`) ?? part.stage).focus();
  }

  // --- Steps ---

  function show() {
    const game = games[at.game], position = game.positions[at.step], end = game.positions.length - 1;
    const kind = KINDS[game.game];
    kind.draw(game, position);
    drawChoices(game, position);
    part.caption.textContent = kind.tell(game, position);
    part.hidden.hidden = !kind.hides;
    part.step.max = end;
    part.step.value = at.step;
    part.where.textContent = `${at.step + 1} of ${end + 1}`;
    part.step.setAttribute("aria-valuetext", `step ${at.step + 1} of ${end + 1}`);
    for (const id of ["first", "back"]) part[id].setAttribute("aria-disabled", at.step === 0);
    for (const id of ["next", "last"]) part[id].setAttribute("aria-disabled", at.step === end);
  }

  function goTo(step) {
    at.step = Math.min(Math.max(step, 0), games[at.game].positions.length - 1);
    show();
  }

  function choose(number) {
    stop();
    at.game = number;
    part.reason.textContent = `${games[number].reason} ${games[number].deal}.`;
    goTo(0);
  }

  function stop() {
    clearInterval(at.timer);
    at.timer = null;
    part.auto.textContent = "Play";
    part.caption.setAttribute("aria-live", "polite");
  }

  function advance() {
    goTo(at.step + 1);
    if (at.step === games[at.game].positions.length - 1) stop();
  }

  function toggle() {
    if (at.timer !== null) return stop();
    if (at.step === games[at.game].positions.length - 1) goTo(0);
    part.caption.setAttribute("aria-live", "off"); // nobody can listen as fast
    part.auto.textContent = "Pause";
    at.timer = setInterval(advance, 1000 * SECONDS_PER_STEP);
  }

  const MOVES = {
    first: () => 0,
    back: () => at.step - 1,
    next: () => at.step + 1,
    last: () => Infinity,
  };
  const KEYS = { Home: "first", ArrowLeft: "back", ArrowRight: "next", End: "last" };

  function move(name) {
    stop();
    goTo(MOVES[name]());
  }

  function onKey(event) {
    const { target } = event;
    const scrolls = target.matches(".scroll") && target.scrollWidth > target.clientWidth;
    if (target === part.step || scrolls || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && target === part.stage) toggle();
    else if (event.key in KEYS) move(KEYS[event.key]);
    else return;
    event.preventDefault();
  }

  for (const name of Object.keys(MOVES)) part[name].addEventListener("click", () => move(name));
  part.auto.addEventListener("click", toggle);
  part.step.addEventListener("input", () => { stop(); goTo(Number(part.step.value)); });
  part.game.addEventListener("change", () => choose(part.game.selectedIndex));
  part.stage.addEventListener("keydown", onKey);
  choose(0);
})();
