/** The folded and unfolded parts, kept while their rows come and go with scrolling. */

import { createContext, useContext, useState } from "react";

export const Folds = createContext<Map<string, boolean>>(new Map());

/** The open state of the part named `key`, like useState. */
export function useFold(key: string, initially: boolean): [boolean, (open: boolean) => void] {
  const folds = useContext(Folds);
  const [open, setOpen] = useState(folds.get(key) ?? initially);
  return [
    open,
    (next) => {
      folds.set(key, next);
      setOpen(next);
    },
  ];
}
