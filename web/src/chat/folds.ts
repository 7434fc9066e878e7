/** The folded and unfolded parts, kept while their rows come and go with scrolling. */

import { createContext, useContext, useState } from "react";

export const Folds = createContext<Map<string, boolean>>(new Map());

/** The open state of the part named `key`: `initially`, also if that changes, until the user folds or unfolds it. */
export function useFold(key: string, initially: boolean): [boolean, (open: boolean) => void] {
  const folds = useContext(Folds);
  const [chosen, setChosen] = useState(folds.get(key));
  return [
    chosen ?? initially,
    (next) => {
      folds.set(key, next);
      setChosen(next);
    },
  ];
}
