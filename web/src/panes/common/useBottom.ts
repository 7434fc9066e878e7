import { type RefObject, useEffect, useRef } from "react";

/** Pixels from the end within which a reader is taken to be at it. */
const NEAR = 80;

/** Keep a scrolling list at its end while it grows, unless the user scrolled away from there. */
export function useBottom<Place extends HTMLElement = HTMLOListElement>(size: number): RefObject<Place | null> {
  const place = useRef<Place>(null);
  const near = useRef(true);
  useEffect(() => {
    const shown = place.current;
    if (!shown) return;
    const scrolled = () => {
      near.current = shown.scrollHeight - shown.scrollTop - shown.clientHeight < NEAR;
    };
    shown.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      shown.removeEventListener("scroll", scrolled);
    };
  }, []);
  useEffect(() => {
    if (near.current && place.current) place.current.scrollTop = place.current.scrollHeight;
  }, [size]);
  return place;
}
