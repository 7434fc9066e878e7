export function FirstRun() {
  return <main className="page" />;
}
