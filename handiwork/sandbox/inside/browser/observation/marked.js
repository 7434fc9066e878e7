// Draws boxes and their bids into a picture of the window; the page's document stays unchanged.
async (page, picture, boxes) => {
  const COLOURS = ["#d00000", "#0050d0", "#007a1f", "#8a00b8", "#b35900", "#007a7a"];
  const bytes = Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const drawing = canvas.getContext("2d");
  drawing.drawImage(image, 0, 0);
  const scale = image.width / innerWidth;
  drawing.scale(scale, scale);
  drawing.font = "bold 11px sans-serif";
  drawing.textBaseline = "top";
  drawing.lineWidth = 1.5;
  boxes.forEach(([bid, x, y, width, height], index) => {
    const colour = COLOURS[index % COLOURS.length];
    drawing.strokeStyle = drawing.fillStyle = colour;
    drawing.strokeRect(x, y, width, height);
    const long = drawing.measureText(bid).width + 4;
    // Above its box if there is room, so that the box's content stays readable.
    const left = Math.max(0, Math.min(x, innerWidth - long));
    const top = y >= 13 ? y - 13 : y;
    drawing.fillRect(left, top, long, 13);
    drawing.fillStyle = "white";
    drawing.fillText(bid, left + 2, top + 1);
  });
  const drawn = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  const parts = [];
  for (let from = 0; from < drawn.length; from += 32768) parts.push(String.fromCharCode(...drawn.subarray(from, from + 32768)));
  return [btoa(parts.join(""))];
}
