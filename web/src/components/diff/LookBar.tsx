import { usePhone } from "../../media";
import { RadioGroup } from "../RadioGroup";
import { choose, useLook } from "./look";

const VIEWS = { unified: "Unified", split: "Split" };

/** Choices of how diffs look; a split view always wraps. */
export function LookBar({ narrow = false }: { narrow?: boolean }) {
  const phone = usePhone();
  const { split, wrap } = useLook(narrow);
  return (
    <div className="row diff-look">
      {!split && (
        <label className="check">
          <input type="checkbox" checked={wrap} onChange={(event) => choose("wrap", event.target.checked)} />
          Wrap
        </label>
      )}
      {!narrow && !phone && (
        <RadioGroup
          label="View of the changes"
          options={VIEWS}
          value={split ? "split" : "unified"}
          onChange={(view) => choose("split", view === "split")}
        />
      )}
    </div>
  );
}
