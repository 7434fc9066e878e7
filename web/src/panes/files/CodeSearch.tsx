import { type ReactNode, useState } from "react";

import { SearchField } from "../../components/SearchField";
import { Problem } from "../../components/Problem";
import type { CodeMatch, CodeMatches } from "../../../generated/types";
import { plural } from "../../wording/format";
import { exact } from "../../wording/text";

interface FieldProps {
  /** The matches of the last search; null before any. */
  found: CodeMatches | null;
  busy: boolean;
  problem: string;
  /** Receives the query at Enter, and "" once the field is empty. */
  onSearch: (query: string) => void;
}

/** The search of the workspace's code, by the same index as the agents'. */
export function CodeSearch({ found, busy, problem, onSearch }: FieldProps) {
  const [query, setQuery] = useState("");
  return (
    <>
      <form
        className="pane-bar"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          onSearch(query.trim());
        }}
      >
        <SearchField
          label="Search the code"
          placeholder="Search the code: words, or type: CLASS AND name: Parser*"
          value={query}
          onChange={(value) => {
            setQuery(value);
            if (!value) onSearch("");
          }}
        />
        <span className="faint" role="status">
          {busy ? "Searching …" : found && summary(found)}
        </span>
      </form>
      <Problem text={problem} />
    </>
  );
}

function summary({ total, extended, matches }: CodeMatches): ReactNode {
  if (total === 0) return "No block matches: try fewer or other words.";
  const shown = total > matches.length ? `, the best ${matches.length} are shown` : "";
  const why = extended ? "; their words only begin like yours" : "";
  return `${plural(total, "block")}${shown}${why}`;
}

interface MatchesProps {
  matches: readonly CodeMatch[];
  chosen: CodeMatch | null;
  onChoose: (match: CodeMatch) => void;
}

/** The blocks of code that match a search, the best first. */
export function CodeMatchList({ matches, chosen, onChoose }: MatchesProps) {
  return (
    <ol className="list" aria-label="Blocks that match">
      {matches.map((match, index) => (
        <li key={index}>
          <button
            type="button"
            className="pane-choice code-match"
            aria-pressed={match.path === chosen?.path && match.first === chosen.first && match.name === chosen.name}
            onClick={() => onChoose(match)}
          >
            <span className="faint">{match.type}</span> <strong>{exact(match.name)}</strong>
            <span className="mono faint">{`${exact(match.path)}:${match.first}`}</span>
            <span className="mono cut">{exact(match.text)}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}
