import { type RefObject, useEffect, useRef } from "react";

/** The most pixels from the end at which the list still follows. */
const NEAR = 80;

/** Keep a growing list scrolled to its end, unless the user scrolled away from it. */
export function useBottom<Element extends HTMLElement = HTMLOListElement>(size: number): RefObject<Element | null> {
  const list = useRef<Element>(null);
  const near = useRef(true);
  useEffect(() => {
    const element = list.current;
    if (!element) return;
    const onScroll = () => {
      near.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, []);
  useEffect(() => {
    if (near.current && list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [size]);
  return list;
}
