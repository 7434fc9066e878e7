/** Paths in the workspace, and the kinds of files the viewer shows. */

export type FileKind = "text" | "picture" | "binary";

export function kindOf(mediaType: string): FileKind {
  if (mediaType.startsWith("image/")) return "picture";
  return mediaType.startsWith("text/") ? "text" : "binary";
}

/** Return the path of `name` in a directory; "" is the workspace. */
export function joined(directory: string, name: string): string {
  return directory ? `${directory}/${name}` : name;
}
