-- Everybody by what they are interested in, with what is known of them, in French.
-- XMark, Query 10, as SQL over the streams of the document.
-- XMark nests the people in their categories; here each is a row with its category.
-- The end of a person closes their interests (interest.person), and unique ids (person.id) purge those before.
-- Verdict, followed: answers at once, keeps what is open.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');
CREATE TABLE interest USING xmark OPTIONS (path '${XMARK}', stream 'interest');

SELECT DISTINCT i.category AS categorie, p.id AS identifiant, p.gender AS sexe, p.age, p.education, p.income AS revenu,
       p.name AS nom, p.street AS rue, p.city AS ville, p.country AS pays, p.emailaddress AS courrier,
       p.homepage AS pagePerso, p.creditcard AS cartePaiement
FROM interest i JOIN person p ON p.id = i.person;
