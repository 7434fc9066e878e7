import { useEffect, useState } from "react";

import { said } from "../../api";

export interface Loaded<Value> {
  /** What was loaded last; it stays while it is loaded again. */
  value: Value | null;
  error: string;
  loading: boolean;
}

/** Load something now and whenever `keys` change; an answer that was overtaken is dropped. */
export function useLoaded<Value>(load: () => Promise<Value>, keys: readonly unknown[]): Loaded<Value> {
  const [state, setState] = useState<Loaded<Value>>({ value: null, error: "", loading: true });
  useEffect(() => {
    let wanted = true;
    setState((before) => ({ ...before, loading: true }));
    load().then(
      (value) => {
        if (wanted) setState({ value, error: "", loading: false });
      },
      (error: unknown) => {
        if (wanted) setState({ value: null, error: said(error), loading: false });
      },
    );
    return () => {
      wanted = false;
    };
  }, keys);
  return state;
}

/** `value`, once it has stood still for `delay` milliseconds. */
export function useSettled<Value>(value: Value, delay: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(value);
    }, delay);
    return () => {
      clearTimeout(timer);
    };
  }, [value, delay]);
  return settled;
}
