const KEY = "handiwork.welcomed";

/** Whether this browser has shown the first-run page. */
export function isWelcomed(): boolean {
  return localStorage.getItem(KEY) !== null;
}

export function setWelcomed(): void {
  localStorage.setItem(KEY, "yes");
}
