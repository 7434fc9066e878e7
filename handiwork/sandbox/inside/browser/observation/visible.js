// Lists the part of the document in a part of its window: [JSON, element, element ...]; the JSON's items are in the
// order of the page, each with the index of its parent item. The elements belong to the items with an `element`.
(page, left = 0, top = 0, right = innerWidth, bottom = innerHeight) => {
  const LEAVES = new Set(["INPUT", "TEXTAREA", "SELECT", "IFRAME", "FRAME", "OBJECT", "VIDEO", "AUDIO", "CANVAS", "IMG"]);
  const FIELDS = new Set(["INPUT", "TEXTAREA", "SELECT", "IFRAME", "FRAME"]);
  const NATIVE = "a[href], button, input, select, textarea, summary, [contenteditable]:not([contenteditable=false i]), [onclick]," +
    "[role=button], [role=link], [role=checkbox], [role=radio], [role=switch], [role=tab], [role=option], [role=textbox]," +
    "[role=combobox], [role=searchbox], [role=slider], [role=spinbutton], [role=treeitem], [role^=menuitem]";
  const MANY_OPTIONS = 100;
  const LONG_TEXT = 2000;
  const items = [];
  const elements = [];
  let texts = 0;

  const cut = (box, other) => ({
    left: Math.max(box.left, other.left),
    top: Math.max(box.top, other.top),
    right: Math.min(box.right, other.right),
    bottom: Math.min(box.bottom, other.bottom),
  });
  const empty = (box) => box.right - box.left < 1 || box.bottom - box.top < 1;
  const within = (box, clip) =>
    box.left >= clip.left && box.right <= clip.right && box.top >= clip.top && box.bottom <= clip.bottom;
  const whole = { left, top, right, bottom };
  const range = document.createRange();
  const boxOf = (text, from, to) => {
    range.setStart(text, from);
    range.setEnd(text, to);
    return range.getBoundingClientRect();
  };
  const seen = (text, clip) => {
    range.selectNodeContents(text);
    for (const box of range.getClientRects()) if (!empty(cut(box, clip))) return true;
    return false;
  };
  // Of a text of many screens only the lines in the window: search for the first offsets not above and below it.
  const lines = (text, clip) => {
    const search = (holds) => {
      let low = 0;
      let high = text.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (holds(boxOf(text, middle, middle + 1))) high = middle;
        else low = middle + 1;
      }
      return low;
    };
    const from = search((box) => box.bottom > clip.top);
    return text.data.slice(from, search((box) => box.top >= clip.bottom));
  };
  const words = (text, clip) => {
    const data = text.length > LONG_TEXT ? lines(text, clip) : text.data;
    return data.replace(/[\s\u200b]+/g, " ").trim();
  };
  const options = (select) => {
    const all = [...select.options];
    const shown = all.filter((option, index) => index < MANY_OPTIONS || option.selected);
    const name = (option) => [option.closest("optgroup"), option].map((part) => part?.label.trim()).filter(Boolean).join(": ");
    return {
      list: shown.map((option) => [option.getAttribute("bid"), name(option), option.selected, option.matches(":disabled")]),
      more: all.length - shown.length,
    };
  };
  const rolls = (overflow) => /auto|scroll/.test(overflow);
  // The pixels outside of what an element shows, in the directions in which the wheel moves it.
  const hidden = (element, height, width, down, sideways) => {
    const across = sideways ? element.scrollWidth - element.clientWidth : 0;
    const before = across && element.scrollLeft + (getComputedStyle(element).direction === "rtl" ? across : 0);
    const above = down ? element.scrollTop : 0;
    const below = down ? element.scrollHeight - above - height : 0;
    return { height, width, above, below, left: before, right: across - before };
  };
  // The wheel moves nothing where the page turned it off, as under a modal window. The body says so for the window only
  // if the root says nothing.
  const ruling = [document.documentElement, document.body].find((root) => {
    const style = root && getComputedStyle(root);
    return style && (style.overflowX !== "visible" || style.overflowY !== "visible");
  });
  const off = (axis) => ruling !== undefined && /hidden|clip/.test(getComputedStyle(ruling)[axis]);

  // A page that draws a checkbox or file button of its own hides the real one, and its label takes the clicks.
  const hiddenControl = (node) => {
    const control = node.tagName === "LABEL" ? node.control : null;
    if (!control || !/^(checkbox|radio|file)$/.test(control.type) || control.disabled) return null;
    const style = getComputedStyle(control);
    const hidden = style.display === "none" || style.visibility !== "visible" || empty(control.getBoundingClientRect());
    return hidden ? control : null;
  };

  // The names that a page's code has for an icon: those of the first element in it with an id, a class or a picture.
  const attributes = (icon) => {
    for (const element of [icon, ...icon.querySelectorAll("*")]) {
      const address = element.tagName === "IMG" ? element.src : element.tagName === "use" ? element.href.baseVal : "";
      const src = address.startsWith("data:") ? "" : address.replace(/\?[^#]*/, "").split(/[/#]/).at(-1);
      const found = Object.entries({ id: element.getAttribute("id"), class: element.getAttribute("class"), src });
      const named = found.filter(([, value]) => value?.trim());
      if (named.length) return named;
    }
    return [];
  };

  // `clip` bounds elements in the flow, `outer` those positioned against the nearest positioned ancestor.
  const walk = (node, parent, clip, outer, pointed) => {
    if (node.nodeType !== Node.ELEMENT_NODE || page.skipped(node)) return;
    const box = node.getBoundingClientRect();
    if (!node.firstElementChild && !node.shadowRoot && node.tagName !== "SLOT" && !empty(box) && empty(cut(box, whole))) return;
    const style = getComputedStyle(node);
    if (style.display === "none") return;
    const fixed = style.position === "fixed";
    const mine = fixed ? whole : style.position === "absolute" ? outer : clip;
    const shown = style.visibility === "visible";
    const visible = shown && !empty(cut(box, mine));
    const pointer = style.cursor === "pointer";
    const number = items.length;
    const item = { parent, bid: node.getAttribute("bid"), visible };
    items.push(item);
    if (visible) {
      item.native = node.matches(NATIVE);
      const control = hiddenControl(node);
      item.pointer = (pointer && !pointed) || control !== null;
      if (control && control.type !== "file") item.checked = control.checked;
      const part = cut(box, mine);
      item.box = [part.left, part.top, part.right - part.left, part.bottom - part.top];
      if (node.tagName === "SELECT") item.options = options(node);
      if (node.tagName === "IFRAME" || node.tagName === "FRAME") {
        const x = box.left + node.clientLeft + parseFloat(style.paddingLeft);
        const y = box.top + node.clientTop + parseFloat(style.paddingTop);
        const inner = cut({ left: x, top: y, right: x + node.clientWidth, bottom: y + node.clientHeight }, mine);
        item.frame = { x, y, window: [inner.left - x, inner.top - y, inner.right - x, inner.bottom - y] };
      }
      if (node.namespaceURI.endsWith("/svg")) item.tag = node.tagName;
      const [down, across] = [rolls(style.overflowY), rolls(style.overflowX)];
      if ((down || across) && node.clientHeight && node !== ruling && !FIELDS.has(node.tagName)) {
        item.pane = hidden(node, node.clientHeight, node.clientWidth, down, across);
      }
    }
    const root = node === document.documentElement || node === document.body;
    const textsBefore = texts;
    if (!LEAVES.has(node.tagName)) {
      const clipped = style.overflowX !== "visible" || style.overflowY !== "visible";
      const inside = clipped && !root && style.display !== "inline" ? cut(mine, box) : mine;
      const positioned = style.position !== "static" || style.transform !== "none";
      inwards(node, number, inside, positioned ? inside : outer, shown, !clipped && !empty(box) && within(box, mine), pointer && visible);
    }
    // Invisible elements stay only as ancestors of visible ones.
    if (!visible && items.length === number + 1) items.pop();
    // An editor in a frame is the frame's whole body.
    else if (node === document.body && node.isContentEditable) item.editor = true;
    else if (!root) {
      item.element = elements.length;
      elements.push(node);
      if (visible && texts === textsBefore && !FIELDS.has(node.tagName)) item.attributes = attributes(node);
    }
  };
  const inwards = (node, number, clip, outer, shown, entirely, pointer) => {
    for (const child of page.children(node)) {
      if (child.nodeType !== Node.TEXT_NODE) walk(child, number, clip, outer, pointer);
      else if (shown && /\S/.test(child.data)) {
        if (!entirely && !seen(child, clip)) continue;
        const text = words(child, clip);
        if (text) {
          texts += 1;
          items.push({ parent: number, text });
        }
      }
    }
  };
  walk(document.documentElement, -1, whole, whole, false);

  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  const scrolled = document.scrollingElement ?? document.documentElement;
  const found = {
    items,
    title: document.title,
    focused: active && active !== document.body ? active.getAttribute("bid") : null,
    ...hidden(scrolled, innerHeight, innerWidth, !off("overflowY"), !off("overflowX")),
  };
  return [JSON.stringify(found), ...elements];
}
