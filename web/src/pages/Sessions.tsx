export function Sessions() {
  return <main className="page" />;
}
