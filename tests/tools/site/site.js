/* Buttons that copy code, and everything that scrolls or opens within reach of the keyboard. */
"use strict";

/* What a reader would type: of a session the commands, without prompts and output. */
const typed = (block) => {
  const lines = block.querySelector("pre").innerText.replace(/\n+$/, "").split("\n");
  const prompts = block.parentElement.matches(".highlight-console, .highlight-pycon") || lines[0].startsWith(">>> ");
  if (!prompts) return lines.join("\n");
  return lines.filter((line) => /^(\$|>>>|\.\.\.) /.test(line)).map((line) => line.replace(/^\S+ /, "")).join("\n");
};

const addCopyButton = (block) => {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(typed(block));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.append(button);
};

const makeScrollable = () => {
  for (const part of document.querySelectorAll(".table-wrapper, .highlight pre")) {
    const scrolls = part.scrollWidth > part.clientWidth + 1;
    part.classList.toggle("scrolls", scrolls);
    part.toggleAttribute("tabindex", scrolls);
    if (scrolls) part.tabIndex = 0;
  }
};

/* The labels that open the two tables of contents on a narrow page. */
const makeButton = (label) => {
  label.tabIndex = 0;
  label.setAttribute("role", "button");
  label.setAttribute("aria-label", label.htmlFor === "__toc" ? "Contents of this page" : "All pages");
  label.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    label.click();
  });
};

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("article .highlight").forEach(addCopyButton);
  document.querySelectorAll(".nav-overlay-icon, .toc-overlay-icon").forEach(makeButton);
  makeScrollable();
  addEventListener("resize", makeScrollable);
});
