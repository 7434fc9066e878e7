/** What the user folded or unfolded, kept while the rows it is about come and go with scrolling. */

import { createContext, useContext, useState } from "react";

export const Folds = createContext<Map<string, boolean>>(new Map());

/** Like useState for whether the part named `key` is open. */
export function useFold(key: string, initially: boolean): [boolean, (open: boolean) => void] {
  const kept = useContext(Folds);
  const [open, setOpen] = useState(kept.get(key) ?? initially);
  return [
    open,
    (next) => {
      kept.set(key, next);
      setOpen(next);
    },
  ];
}
