const KEY = "handiwork.welcomed";

/** Whether the user has seen, or left, the first-run page in this browser. */
export function isWelcomed(): boolean {
  return localStorage.getItem(KEY) !== null;
}

export function setWelcomed(): void {
  localStorage.setItem(KEY, "yes");
}
