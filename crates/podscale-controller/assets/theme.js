// Runs before the page is drawn, so that a chosen theme never flashes the other one.
try {
  const theme = localStorage.getItem("podscale-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; the system's choice holds then.
}
