// Gives every element of the document, open shadow roots included, a unique attribute `bid` that never changes.
// An iframe's bid consists of letters, every other element's of digits, both after the frame's prefix.
// Returns the iframes, and functions to walk the rendered document.
(prefix) => {
  const SKIPPED = new Set(["HEAD", "SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "LINK", "META", "BR"]);
  const FRAMES = new Set(["IFRAME", "FRAME"]);
  const key = Symbol.for("handiwork.bids");
  if (globalThis[key]?.prefix !== prefix) {
    const fresh = { prefix, numbers: 0, frames: 0, bids: new WeakMap(), owners: new Map() };
    Object.defineProperty(globalThis, key, { value: fresh, configurable: true });
  }
  const state = globalThis[key];

  // a to z, aA to zA, aB ... : each name begins with its only lower-case letter, so that joined names can be separated.
  const letters = (index) => {
    let name = "";
    for (let rest = Math.floor(index / 26); rest > 0; rest = Math.floor((rest - 1) / 26)) {
      name = String.fromCharCode(65 + ((rest - 1) % 26)) + name;
    }
    return String.fromCharCode(97 + (index % 26)) + name;
  };
  const owner = (bid) => state.owners.get(bid)?.deref();
  const next = (frame) => {
    let bid;
    do bid = prefix + (frame ? letters(state.frames++) : String(state.numbers++));
    while (owner(bid)?.isConnected);
    return bid;
  };
  // A copy carries the bid of its original, and may keep it only if the original is gone (a rewritten page).
  const inherited = (element) => {
    const bid = element.getAttribute("bid");
    return bid !== null && state.owners.has(bid) && !owner(bid)?.isConnected ? bid : null;
  };
  const mark = (element) => {
    let bid = state.bids.get(element);
    if (bid === undefined || owner(bid) !== element) {
      bid = inherited(element) ?? next(FRAMES.has(element.tagName));
      state.bids.set(element, bid);
      state.owners.set(bid, new WeakRef(element));
    }
    if (element.getAttribute("bid") !== bid) element.setAttribute("bid", bid);
  };
  const frames = [];
  const walk = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT, (node) =>
      SKIPPED.has(node.tagName) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
    );
    while (walker.nextNode()) {
      mark(walker.currentNode);
      if (FRAMES.has(walker.currentNode.tagName)) frames.push(walker.currentNode);
      if (walker.currentNode.shadowRoot) walk(walker.currentNode.shadowRoot);
    }
  };
  walk(document);
  // The children as rendered: a shadow root's in place of its host's, slotted elements in their slot.
  const children = (node) => {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    if (node.tagName === "DETAILS" && !node.open) return node.querySelectorAll(":scope > summary:first-of-type");
    if (node.tagName === "SLOT" && node.assignedNodes().length) return node.assignedNodes();
    return node.childNodes;
  };
  const skipped = (element) => SKIPPED.has(element.tagName) || element.ariaHidden === "true";
  return { frames, children, skipped };
}
