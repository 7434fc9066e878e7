// Returns the document's text for reading: [JSON, iframe, iframe ...]; the JSON is a list of lines, and of
// {frame: bid} in place of an iframe.
(page) => {
  const PRESSED = new Set(["A", "BUTTON", "SUMMARY"]);
  const INLINE = /^(inline|contents|ruby)/;
  const lines = [];
  let line = "";
  let begin = "";
  const end = () => {
    const text = line.replace(/[ \t\u200b]+/g, " ").replace(/\] ([.,;:!?)])/g, "]$1").trim();
    if (text) {
      lines.push(begin + text);
      begin = begin.replace(/\S/g, " ");
    }
    line = "";
  };
  const starting = (start, inside) => {
    end();
    const before = begin;
    begin = start;
    inside();
    end();
    begin = before;
  };
  const all = (node) => {
    for (const child of page.children(node)) read(child);
  };
  const named = (node) => (node.getAttribute("aria-label") ?? node.title ?? "").trim();
  // A link without text still leads somewhere: show its label, or that it exists.
  const pressed = (node) => {
    line += " ";
    const before = [lines.length, line];
    all(node);
    if (lines.length === before[0] && line.trim() === before[1].trim()) line += named(node) || node.tagName.toLowerCase();
    line += ` [${node.getAttribute("bid")}] `;
  };
  // What a field holds, on one line: as in the tree, dots for a password.
  const held = (field) => {
    if (/^(checkbox|radio)$/.test(field.type)) return field.checked ? " checked" : " unchecked";
    const chosen = field.tagName === "SELECT" ? [...field.selectedOptions].map((option) => option.label.trim()) : [];
    const value = field.tagName === "SELECT" ? chosen.join(", ") : field.value;
    return value ? ` value=${JSON.stringify(field.type === "password" ? value.replace(/./gs, "•") : value)}` : "";
  };
  const row = (node) => {
    const cells = [...node.cells].filter((cell) => cell.checkVisibility());
    const outside = [lines.length, begin];
    begin = "";
    const texts = cells.map((cell) => {
      line = "";
      all(cell);
      end();
      return lines.splice(outside[0]).map((part) => part.trim ? part.trim() : part);
    });
    begin = outside[1];
    lines.push(`${begin}| ${texts.map((parts) => parts.filter((part) => !part.frame).join(" ")).join(" | ")} |`);
    lines.push(...texts.flat().filter((part) => part.frame));
  };
  const preformatted = (node) => {
    end();
    for (const text of node.innerText.replace(/\n$/, "").split("\n")) lines.push(text);
  };
  const read = (node) => {
    if (node.nodeType === Node.TEXT_NODE) line += node.data.replace(/\s+/g, " ");
    if (node.tagName === "BR") end();
    if (node.nodeType !== Node.ELEMENT_NODE || page.skipped(node)) return;
    const style = getComputedStyle(node);
    if (style.display === "none" || (style.visibility !== "visible" && !node.firstElementChild)) return;
    const heading = /^H([1-6])$/.exec(node.tagName);
    const level = heading ? Number(heading[1]) : node.role === "heading" ? Number(node.ariaLevel ?? 2) : 0;
    const listed = node.tagName === "LI" || node.role === "listitem";
    if (node.tagName === "IFRAME" || node.tagName === "FRAME") {
      end();
      lines.push({ frame: node.getAttribute("bid") });
    } else if (node.tagName === "IMG") line += node.alt ? ` (picture: ${node.alt.trim()}) ` : "";
    else if (node.tagName === "TEXTAREA" || node.tagName === "INPUT" || node.tagName === "SELECT") {
      line += node.type === "hidden" ? "" : ` [${node.getAttribute("bid")}]${held(node)} `;
    } else if (PRESSED.has(node.tagName) || node.role === "link" || node.role === "button") {
      if (INLINE.test(style.display)) pressed(node);
      else starting(begin, () => pressed(node));
    } else if (level) starting(`${"#".repeat(level)} `, () => all(node));
    else if (listed) starting(`${begin.replace(/\S/g, " ")}- `, () => all(node));
    else if (node.tagName === "UL" || node.tagName === "OL") starting(begin ? begin.replace(/\S/g, " ") : "", () => all(node));
    else if (node.tagName === "TR" && !node.querySelector("table")) row(node);
    else if (node.tagName === "PRE") preformatted(node);
    else if (INLINE.test(style.display)) all(node);
    else starting(begin, () => all(node));
  };
  read(document.body ?? document.documentElement);
  end();
  return [JSON.stringify(lines), ...page.frames];
}
