// Describes the element that an action would reach: [JSON] of null if there is none, of the place in an inner frame with
// that frame's element, or of the facts with the element that reacts to the action.
// `wanted` has a `bid`, a point `x`, `y` of the window, or neither for the element with the focus.
(page, prefix, wanted) => {
  const ACTING = "button, a[href], input, select, textarea, summary, option, label, [onclick]," +
    "[contenteditable]:not([contenteditable=false i]), [role=button], [role=link], [role=checkbox], [role=radio], [role=switch], [role=tab]," +
    "[role=option], [role=textbox], [role=combobox], [role=searchbox], [role=treeitem], [role^=menuitem]";
  const NOT_TYPED = new Set(["hidden", "submit", "image", "button", "reset", "checkbox", "radio", "file", "range", "color"]);
  const LONGEST = 300;

  const find = (root, bid) => {
    const hit = root.querySelector(`[bid="${CSS.escape(bid)}"]`);
    if (hit) return hit;
    for (const element of root.querySelectorAll("*")) {
      const inner = element.shadowRoot && find(element.shadowRoot, bid);
      if (inner) return inner;
    }
    return null;
  };
  const at = (x, y) => {
    let element = document.elementFromPoint(x, y);
    for (;;) {
      const inner = element?.shadowRoot?.elementFromPoint(x, y);
      if (!inner || inner === element) return element;
      element = inner;
    }
  };
  const focused = () => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element === document.body || element === document.documentElement ? null : element;
  };
  const nearest = (element, selector) => {
    for (let node = element; node; node = node.getRootNode().host) {
      const hit = node.closest(selector);
      if (hit) return hit;
    }
    return null;
  };
  const words = (...texts) => texts.map((text) => (text ?? "").replace(/\s+/g, " ").trim().slice(0, LONGEST)).filter(Boolean);
  const isTyped = (element) =>
    element.tagName === "TEXTAREA" || (element.tagName === "INPUT" && !NOT_TYPED.has(element.type)) || element.isContentEditable;
  const isButton = (element) =>
    element.tagName === "BUTTON" || (element.tagName === "INPUT" && ["submit", "image", "button", "reset"].includes(element.type));
  const isSubmit = (element) => isButton(element) && (element.type === "submit" || element.type === "image");
  const labels = (element) => [...(element.labels ?? [])].map((label) => label.innerText);

  let element = null;
  if (wanted.bid !== undefined) {
    const frame = /^[a-z][A-Z]*/.exec(wanted.bid.slice(prefix.length));
    const inside = frame && prefix + frame[0] !== wanted.bid;
    element = find(document, inside ? prefix + frame[0] : wanted.bid);
    if (element && inside) return [JSON.stringify({ inside: wanted }), element];
  } else {
    element = wanted.x !== undefined ? at(wanted.x, wanted.y) : focused();
    if (element && (element.tagName === "IFRAME" || element.tagName === "FRAME")) {
      const box = element.getBoundingClientRect();
      const moved = { x: wanted.x - box.x - element.clientLeft, y: wanted.y - box.y - element.clientTop };
      return [JSON.stringify({ inside: wanted.x !== undefined ? moved : wanted }), element];
    }
  }
  if (!element) return ["null"];

  let acting = nearest(element, ACTING) ?? element;
  if (acting.tagName === "LABEL" && acting.control) acting = acting.control;
  const form = acting.form ?? nearest(acting, "form");
  const boxes = form ? [...form.elements].filter(isTyped) : [];
  const box = boxes.length === 1 ? boxes[0] : !form && isTyped(acting) ? acting : null;
  const sending = form ? [...form.elements].find(isSubmit) : null;
  const dialog = nearest(acting, "dialog, [role=dialog], [role=alertdialog]");
  const href = acting.tagName === "A" && /^(https?|file):$/.test(acting.protocol) && !/^#?$/.test(acting.getAttribute("href"));
  const facts = {
    texts: words(
      acting.getAttribute("aria-label"), acting.getAttribute("title"), acting.getAttribute("alt"),
      isButton(acting) ? acting.value : "", element.getAttribute("aria-label"),
      element.tagName === "SELECT" ? "" : element.innerText,
      isTyped(acting) || acting.tagName === "SELECT" ? "" : acting.innerText, ...labels(acting),
    ),
    link: href ? `${acting.pathname}${acting.search}`.slice(0, 2000) : "",
    typed: isTyped(acting),
    select: acting.tagName === "SELECT" || acting.tagName === "OPTION",
    file: element.tagName === "INPUT" && element.type === "file",
    submits: Boolean(form) && isSubmit(acting),
    form: Boolean(form),
    // The words of a form that only asks for something, like a search: of its one box, and of its first button.
    query: box?.tagName === "INPUT" && ["text", "search"].includes(box.type) && (!form || form.method === "get")
      ? words(box.type, nearest(box, "search, [role=search], [role=searchbox]") ? "search" : "", box.name, box.placeholder,
        box.getAttribute("aria-label"), ...labels(box), sending?.value, sending?.innerText, sending?.getAttribute("aria-label"))
      : [],
    dialog: words(dialog?.innerText)[0] ?? "",
  };
  return [JSON.stringify(facts), acting];
}
