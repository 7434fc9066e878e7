import { usePhone } from "../../media";
import { RadioGroup } from "../RadioGroup";
import { choose, useLook } from "./look";

const VIEWS = { unified: "Unified", split: "Split" };

/** Choices of how diffs look. With `narrow` there is no room for a split view. */
export function LookBar({ narrow = false }: { narrow?: boolean }) {
  const phone = usePhone();
  const { split, wrap } = useLook();
  return (
    <div className="row diff-look">
      {!narrow && !phone && (
        <RadioGroup
          label="View of the changes"
          options={VIEWS}
          value={split ? "split" : "unified"}
          onChange={(view) => choose("split", view === "split")}
        />
      )}
      <label className="check">
        <input type="checkbox" checked={wrap} onChange={(event) => choose("wrap", event.target.checked)} />
        Wrap
      </label>
    </div>
  );
}
