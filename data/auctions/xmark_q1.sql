-- The name of person0.
-- XMark, Query 1, as SQL over the streams of the document.
-- Nothing is kept. Every id is unique (person.id), the end of the people closes the rest.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');

SELECT name FROM person WHERE id = 0;
