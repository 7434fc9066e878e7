import { useEffect, useState } from "react";
import { errorMessage } from "../api";

interface Loaded<Value> {
  /** The value loaded last; it stays while it is loaded again. */
  value: Value | null;
  problem: string;
  loading: boolean;
}

/** Load a value when the component mounts and whenever `keys` change; a superseded value is dropped. */
export function useLoaded<Value>(load: () => Promise<Value>, keys: readonly unknown[]): Loaded<Value> {
  const [state, setState] = useState<Loaded<Value>>({ value: null, problem: "", loading: true });
  useEffect(() => {
    let current = true;
    setState((before) => ({ ...before, loading: true }));
    load()
      .then(
        (value) => ({ value, problem: "" }),
        (error: unknown) => ({ value: null, problem: errorMessage(error) }),
      )
      .then((result) => {
        if (current) setState({ ...result, loading: false });
      });
    return () => {
      current = false;
    };
  }, keys);
  return state;
}

/** `value`, once it has been the same for `delay` milliseconds. */
export function useSettled<Value>(value: Value, delay: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), delay);
    return () => clearTimeout(timer);
  }, [value, delay]);
  return settled;
}
