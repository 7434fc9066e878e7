/** Paths below the workspace, and how the files there are shown. */

export type Shown = "text" | "picture" | "neither";

/** How a file of this media type is shown. */
export function shown(mediaType: string): Shown {
  if (mediaType.startsWith("image/")) return "picture";
  return mediaType.startsWith("text/") ? "text" : "neither";
}

/** The path of what is called `name` in a directory; "" is the workspace. */
export function below(directory: string, name: string): string {
  return directory ? `${directory}/${name}` : name;
}
