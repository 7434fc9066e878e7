import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import {
  bracketMatching,
  defaultHighlightStyle,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  type LanguageSupport,
  syntaxHighlighting,
} from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { Lines } from "../../components/code/Code";
import { indentation, lineBreak } from "./edits";

/** The languages by the ending of a file's name; each is loaded when a file needs it. */
const LANGUAGES: Record<string, () => Promise<LanguageSupport>> = {
  "py pyi": () => import("@codemirror/lang-python").then(({ python }) => python()),
  "js mjs cjs jsx": () => import("@codemirror/lang-javascript").then(({ javascript }) => javascript({ jsx: true })),
  "ts mts cts": () => import("@codemirror/lang-javascript").then(({ javascript }) => javascript({ typescript: true })),
  tsx: () =>
    import("@codemirror/lang-javascript").then(({ javascript }) => javascript({ jsx: true, typescript: true })),
  json: () => import("@codemirror/lang-json").then(({ json }) => json()),
  "md markdown": () => import("@codemirror/lang-markdown").then(({ markdown }) => markdown()),
  "html htm": () => import("@codemirror/lang-html").then(({ html }) => html()),
  css: () => import("@codemirror/lang-css").then(({ css }) => css()),
  "yaml yml": () => import("@codemirror/lang-yaml").then(({ yaml }) => yaml()),
  "c h cc cpp cxx hpp": () => import("@codemirror/lang-cpp").then(({ cpp }) => cpp()),
  java: () => import("@codemirror/lang-java").then(({ java }) => java()),
  rs: () => import("@codemirror/lang-rust").then(({ rust }) => rust()),
  go: () => import("@codemirror/lang-go").then(({ go }) => go()),
};

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--number)" },
  { tag: [tags.comment, tags.meta], color: "var(--comment)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.className, tags.heading], color: "var(--accent)" },
]);

const THEME = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--back)", color: "var(--text)", fontSize: "12.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.45" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--soft)", borderColor: "var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--ansi-selection)",
  },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
});

interface Props {
  path: string;
  text: string;
  /** The cursor goes to the first of them. */
  lines: Lines | null;
  onChange: (text: string) => void;
  onSave: () => void;
}

/** An editor for one file; it keeps the file's line breaks. `text` is the text at the beginning. */
export default function CodeEditor({ path, text, lines, onChange, onSave }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const handlers = useRef({ onChange, onSave });
  handlers.current = { onChange, onSave };
  const first = useRef(text);
  const shown = useRef<EditorView | null>(null);
  useEffect(() => {
    const language = new Compartment();
    const save = () => {
      handlers.current.onSave();
      return true;
    };
    const view = new EditorView({
      parent: place.current ?? document.body,
      doc: first.current,
      extensions: [
        EditorState.lineSeparator.of(lineBreak(first.current)),
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of(indentation(first.current)),
        bracketMatching(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        search({ top: true }),
        syntaxHighlighting(COLOURS),
        syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
        THEME,
        language.of([]),
        EditorView.contentAttributes.of({ "aria-label": `Text of ${path}` }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) handlers.current.onChange(update.state.sliceDoc());
        }),
        keymap.of([{ key: "Mod-s", run: save }, ...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
      ],
    });
    shown.current = view;
    view.focus();
    let closed = false;
    void languageOf(path)?.then((support) => {
      if (!closed) view.dispatch({ effects: language.reconfigure(support) });
    });
    return () => {
      closed = true;
      view.destroy();
    };
  }, [path]);
  useEffect(() => {
    const view = shown.current;
    if (!view || !lines) return;
    const { from } = view.state.doc.line(Math.min(lines.first, view.state.doc.lines));
    view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  }, [path, lines]);
  return <div className="editor" ref={place} />;
}

function languageOf(path: string): Promise<LanguageSupport> | null {
  const ending = path.split(".").at(-1)?.toLowerCase() ?? "";
  const found = Object.entries(LANGUAGES).find(([endings]) => endings.split(" ").includes(ending));
  return found ? found[1]() : null;
}
